//! Whole operators in a world in memory.

mod flood;
mod http;
mod probing;
mod recloning;
mod refused;
mod reign;
mod specs;
mod storing;
mod told;
mod trouble;
