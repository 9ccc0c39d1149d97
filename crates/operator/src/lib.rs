//! The leader of every group: watches, decides by the brain, and acts, in whatever world it is given.
