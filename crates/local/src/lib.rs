//! A whole group on one machine without Kubernetes: real servers, a state directory, a front door, weather and load.
