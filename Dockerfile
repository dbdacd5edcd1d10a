# swarmc, with what its runs need of a system: a shell, Git, and the certificates of servers.
#
#   docker build --tag swarmc .
#   docker run --rm --volume "$PWD:/work" swarmc check
#
# A release takes binaries that are built already, in dist/image/ARCH: `--build-arg SOURCE=built`.
ARG SOURCE=build

FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN program=$(packaging/build) && install -D --target-directory=/programs "$program" "$program-shim"

FROM scratch AS built
ARG TARGETARCH=amd64
COPY dist/image/${TARGETARCH}/ /programs/

FROM ${SOURCE} AS program

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git \
    && rm -rf /var/lib/apt/lists/*
COPY --from=program /programs/ /usr/local/bin/
# A folder that is mounted from a host belongs to a user of the host.
RUN git config --system --add safe.directory '*'
WORKDIR /work
ENTRYPOINT ["swarmc"]
