# a2mcp. `make demo` shows it, `make test` proves it; everything else is below.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  = -s -w -X main.release=$(VERSION)
# Tools and clients are kept outside the checkout, by version, so that a fresh
# clone does not fetch them again.
CACHE   ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/a2mcp
LINT_VERSION = v2.15.0
LINT    = $(CACHE)/golangci-lint-$(LINT_VERSION)/golangci-lint

# CycloneDX's own tool, which reads what the linker left in a binary.
SBOM = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
TARGETS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: build demo test test-all test-host soak fuzz bench lint cross dist dist-check clean
build: bin/a2mcp

.PHONY: bin/a2mcp
bin/a2mcp:
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/a2mcp

demo:
	@test -x bin/a2mcp || echo 'building a2mcp; the first time takes a while'
	@$(MAKE) --no-print-directory build
	@exec bin/a2mcp demo $(ARGS)

test:
	go vet ./...
	go test -race ./...

# With npm and apt at hand: the conformance suites and real clients of both routes too.
test-all: test
	tests/clients/run.sh
	tests/fileclients/run.sh

# The real omp in all its modes, from npm.
test-host:
	tests/host/run.sh

# What takes longer than CI should: kills, large bodies, floods. Not run in CI.
soak: build
	A2MCP_SOAK=1 go test -count=1 -timeout 120m -run Soak -v ./...

# Every parser of foreign bytes, FUZZTIME each; what is found stays in testdata/fuzz
# and is a test from then on.
FUZZTIME ?= 10m
FUZZ = audit:FuzzFold audit:FuzzParse files:FuzzPath files/obtain:FuzzUnpack hostrpc:FuzzLines httpfront:FuzzBody proto:FuzzMembers sidecar:FuzzConfig
fuzz:
	for target in $(FUZZ); do go test ./$${target%:*} -run xxx -fuzz "^$${target#*:}$$" -fuzztime $(FUZZTIME) || exit 1; done

bench: build
	tests/bench/run.sh
	tests/bench/files.sh
	go test ./files/dufs -run xxx -bench Route -benchtime 8x

lint: $(LINT)
	$(LINT) run ./...
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt'; exit 1; }
	@command -v shellcheck >/dev/null && git ls-files '*.sh' .ci/run .ci/dist-check | xargs shellcheck || echo 'shellcheck is not here; skipped'

$(LINT):
	GOBIN=$(dir $@) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

# Windows and macOS are built and vetted, not run.
cross:
	for os in windows darwin; do for arch in amd64 arm64; do \
	  echo "$$os/$$arch"; GOOS=$$os GOARCH=$$arch go vet ./... && GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 go build -o /dev/null ./cmd/a2mcp || exit 1; \
	done; done

# What is released: static binaries, the configuration's schema, what they are made
# of, and the hashes of all that. The same checkout and Go make the same bytes.
dist:
	rm -rf dist && mkdir dist
	for t in $(TARGETS); do os=$${t%/*} arch=$${t#*/}; suffix=; [ $$os = windows ] && suffix=.exe; \
	  GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 GOAMD64= GOARM64= GOFLAGS=-mod=readonly go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' \
	    -o dist/a2mcp-$(VERSION)-$$os-$$arch$$suffix ./cmd/a2mcp || exit 1; done
	cp sidecar/config.schema.json dist/a2mcp-$(VERSION)-config.schema.json
	go run $(SBOM) bin -json -noserial -notimestamp -version $(VERSION) -output dist/a2mcp-$(VERSION).cdx.json dist/a2mcp-$(VERSION)-linux-amd64
	cd dist && sha256sum a2mcp-* > SHA256SUMS

# Twice the same bytes; the second time from another folder.
dist-check:
	.ci/dist-check

clean:
	rm -rf bin dist
