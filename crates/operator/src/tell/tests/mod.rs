//! Each notice in words, and the teller from the outside.

mod rows;
mod teller;
