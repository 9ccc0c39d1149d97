//! The agent beside one MySQL server: fences it when it may no longer write, opens it when it may.
