//! What the room promises.

mod load;
mod reference;
