//! The parent of mysqld: boots it fenced, holds its permit to be writable, and ends it when the permit is over.
