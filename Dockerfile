# The builder's Debian is the runtime's, so that the C library which the program is linked against is the one it meets.
FROM rust:1.95-slim-bookworm AS build
WORKDIR /build

# Dependencies first, against empty sources: this layer is built anew only when the two Cargo files change.
COPY Cargo.toml Cargo.lock ./
RUN mkdir -p src tests/it benches \
    && touch src/lib.rs tests/it/main.rs benches/judge.rs \
    && echo 'fn main() {}' > src/main.rs \
    && cargo build --release --locked --bin context-recall

COPY src ./src
# Cargo goes by time stamps, and the copied files may be older than the empty ones.
RUN touch src/lib.rs src/main.rs \
    && cargo build --release --locked --bin context-recall \
    && cp target/release/context-recall /context-recall

# C library, libgcc and the CA certificates that calls to a judge are checked against; no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
LABEL org.opencontainers.image.title="context-recall" \
      org.opencontainers.image.description="Context recall of RAG retrievers, with a verdict and checked evidence for every claim" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /context-recall /usr/local/bin/context-recall
# Inside a container every address is reached through a published port; which ones reach it is decided there.
ENV RECALL_HOST=0.0.0.0 PORT=8080
EXPOSE 8080
# As a number, so that Kubernetes can check runAsNonRoot.
USER 65532:65532
# Reads RECALL_HOST and PORT: set the port by the variable, not by a flag, or the check asks at the wrong one.
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 CMD ["/usr/local/bin/context-recall", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/context-recall"]
