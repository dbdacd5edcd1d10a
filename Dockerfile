# swarmc, with what its runs need of a system: a shell, Git, and the certificates of servers.
#
#   docker build --tag swarmc .
#   docker build --tag swarmc-engine --target engine .
#   docker run --rm --volume "$PWD:/work" swarmc check
#
# A release takes binaries that are built already, in dist/image/ARCH and dist/engine/ARCH: `--build-arg SOURCE=built`.
ARG SOURCE=build

FROM rust:1.95-slim-bookworm AS source
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .

FROM source AS build
RUN program=$(packaging/build) && install -D --target-directory=/programs "$program" "$program-shim"

FROM source AS build-engine
RUN program=$(packaging/build --engine) && install -D --target-directory=/programs "$program"

FROM scratch AS built
ARG TARGETARCH=amd64
COPY dist/image/${TARGETARCH}/ /programs/

FROM scratch AS built-engine
ARG TARGETARCH=amd64
COPY dist/engine/${TARGETARCH}/ /programs/

FROM ${SOURCE} AS program

FROM ${SOURCE}-engine AS program-engine

FROM debian:bookworm-slim AS system
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
# A folder that is mounted from a host belongs to a user of the host.
RUN git config --system --add safe.directory '*'
WORKDIR /work

# The engine of runs on several machines, for Restate: docs/cluster.md.
FROM system AS engine
COPY --from=program-engine /programs/ /usr/local/bin/
EXPOSE 9080
ENTRYPOINT ["swarmc-engine"]

FROM system
COPY --from=program /programs/ /usr/local/bin/
ENTRYPOINT ["swarmc"]
