"""One flux7-mesh client as agent and operator, where every caller on the machine is an operator. Argument: URL."""

import sys
import time

from mesh7 import AgentMesh
from mesh7.client import Action


def until(what, probe):
    for _ in range(600):
        found = probe()
        if found:
            return found
        time.sleep(0.05)
    raise AssertionError(what)


mesh = AgentMesh(sys.argv[1], agent="solo")
assert mesh.is_healthy()
assert "fixture.get_item" in {tool.name for tool in mesh.tools()}
assert mesh.call_tool("fixture.get_item", {"id": 1}).action == Action.ALLOW
assert mesh.call_tool("fixture.delete_item", {"id": 1}).action == Action.DENY

waiting = mesh.call_tool("fixture.write_item", {"id": 1})
assert waiting.action == Action.HUMAN_APPROVAL, waiting
assert [item["id"] for item in mesh.pending()] == [waiting.approval_id]
assert mesh.approve(waiting.approval_id)
until(
    "the approved call runs",
    lambda: [
        trace
        for trace in mesh.traces()
        if trace["outcome"] == "ok" and trace.get("approval_id") == waiting.approval_id
    ],
)

# The client names itself, and so does a body without an agent: the grant is for the caller.
grant = mesh.create_grant("fixture.write_item", "5m")
assert grant["agent"] == "solo", grant
bare = mesh._session.post(f"{sys.argv[1]}/grants", json={"tools": "fixture.slow", "duration": "5m"}).json()
assert bare["agent"] == "solo", bare
assert {item["id"] for item in mesh.grants()} == {grant["id"], bare["id"]}
until("the grant arrives", lambda: mesh.decide("fixture.write_item", {"id": 2}).action == Action.ALLOW)
assert mesh.call_tool("fixture.write_item", {"id": 2}).action == Action.ALLOW
assert mesh.revoke_grant(grant["id"]) and mesh.revoke_grant(bare["id"])
assert mesh.grants() == []

# Another agent of this machine is not the one that the grant was for.
other = AgentMesh(sys.argv[1], agent="other")
assert other.call_tool("fixture.write_item", {"id": 3}).action == Action.HUMAN_APPROVAL
assert until("the records arrive", lambda: [trace for trace in mesh.traces() if trace["outcome"] == "ok"])
