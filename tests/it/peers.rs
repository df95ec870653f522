//! Real peers: a llama.cpp server as the judge's backend, and a browser in front of `/docs`. Each is found, or said aloud
//! to be missing; `.ci/run` installs them.

mod browser;
mod llama;
