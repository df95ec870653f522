//! Real peers: a llama.cpp server as the judge's backend, LiteLLM's proxy before it, a server that fails on command, and a
//! browser in front of `/docs`. Each is found, or said aloud to be missing; `.ci/run` installs them.

mod browser;
mod litellm;
mod llama;
mod llmock;
mod shapes;
