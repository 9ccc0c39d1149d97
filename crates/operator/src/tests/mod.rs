//! Whole operators in a world in memory.

mod http;
mod reign;
mod storing;
mod trouble;
