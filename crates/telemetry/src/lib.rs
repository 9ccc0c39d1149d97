//! Every metric and log event of Bloodraven, declared once.
