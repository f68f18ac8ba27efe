# The image of a release, which GoReleaser builds with the program. Jobs of CI systems run
# in it: it has a shell, git and certificates, and nobody in it is root.
FROM alpine:3.22@sha256:5291449c3df73caf6ed85e649dec1b9e818b39a5d8c871e97afc13e9cd5e8fa8
RUN apk add --no-cache ca-certificates git openssh-client \
 && addgroup -g 65532 kalypso \
 && adduser -D -u 65532 -G kalypso kalypso \
 # What a job has checked out belongs to another user. A container has nothing else.
 && git config --system safe.directory '*'
ARG TARGETPLATFORM
COPY $TARGETPLATFORM/kalypso /usr/local/bin/kalypso
USER 65532:65532
WORKDIR /platform
ENTRYPOINT ["kalypso"]
