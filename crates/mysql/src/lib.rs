//! The verbs that Bloodraven says to a MySQL server, each under a deadline; none of them opens anything.
