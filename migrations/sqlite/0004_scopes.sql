-- What the join token of a sidecar allows: a later process of it may ask for all of that, not only for what an earlier one asked
-- for. Rows of before have none: their scope is what they were given.
ALTER TABLE sidecars ADD COLUMN allowed_agents TEXT;
ALTER TABLE sidecars ADD COLUMN allowed_upstreams TEXT;
