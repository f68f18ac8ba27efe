# What kalypso needs is Go, git and make; everything else comes with `go`, but for
# the tests of backends/ansible: on Debian, as root or with sudo --non-interactive,
# they install Ansible, ansible-lint and debootstrap, and make Debians to run in.
GO        ?= go
PACKAGES   = ./...
EXAMPLE   ?= hello-world
export CGO_ENABLED = 0

.PHONY: build test lint bench example docs

build: ## the binary, in bin/
	$(GO) build -o bin/kalypso ./cmd/kalypso

example: build ## compile an example platform into out/, and show what came out
	./bin/kalypso build -C examples/$(EXAMPLE) --to $(CURDIR)/out/$(EXAMPLE)
	@find out/$(EXAMPLE) -name '*.yaml' | sort

test: ## all tests; those of backends/ansible install packages, as said above
	$(GO) test -timeout 20m $(PACKAGES)

lint: ## gofmt, go vet and staticcheck are clean; the tests look at the CUE files
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet $(PACKAGES)
	$(GO) tool staticcheck $(PACKAGES)

bench: ## what builds of generated platforms cost, beside the budgets; BENCH=-quick for small ones
	$(GO) test -run '^$$' -short -bench . -benchtime 200ms -benchmem ./compiler/... ./backends/...
	$(GO) run ./compiler/internal/bench $(BENCH)

docs: ## write the generated pages of docs/ anew
	KALYPSO_UPDATE=1 $(GO) test ./backends ./cmd/kalypso -run 'TestTable|TestDocs|TestReference'
