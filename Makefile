# a2mcp. `make demo` shows it, `make test` proves it; everything else is below.

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  = -s -w -X main.release=$(VERSION)
# Tools and clients are kept outside the checkout, by version, so that a fresh
# clone does not fetch them again.
CACHE   ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/a2mcp
LINT_VERSION = v2.15.0
LINT    = $(CACHE)/golangci-lint-$(LINT_VERSION)/golangci-lint

.PHONY: build demo test test-all soak bench lint cross clean
build: bin/a2mcp

.PHONY: bin/a2mcp
bin/a2mcp:
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/a2mcp

demo: build
	@exec bin/a2mcp demo $(ARGS)

test:
	go vet ./...
	go test -race ./...

# With npm and apt at hand: the conformance suites and real clients of both routes too.
test-all: test
	tests/clients/run.sh
	tests/fileclients/run.sh

# What takes longer than CI should: kills, large bodies, floods. Not run in CI.
soak: build
	A2MCP_SOAK=1 go test -count=1 -timeout 60m -run Soak -v ./...

bench: build
	tests/bench/run.sh
	tests/bench/files.sh

lint: $(LINT)
	$(LINT) run ./...
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo 'run gofmt'; exit 1; }
	@command -v shellcheck >/dev/null && git ls-files '*.sh' .ci/run | xargs shellcheck || echo 'shellcheck is not here; skipped'

$(LINT):
	GOBIN=$(dir $@) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)

# Windows and macOS are built and vetted, not run.
cross:
	for os in windows darwin; do for arch in amd64 arm64; do \
	  echo "$$os/$$arch"; GOOS=$$os GOARCH=$$arch go vet ./... && GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 go build -o /dev/null ./cmd/a2mcp || exit 1; \
	done; done

clean:
	rm -rf bin dist
