//! Whole operators in a world in memory.

mod http;
mod probing;
mod recloning;
mod refused;
mod reign;
mod storing;
mod told;
mod trouble;
