# What kalypso needs is Go, git and make; everything else comes with `go`. No target
# needs root but test-all and test-long, which run on Debian, as root or with sudo
# --non-interactive: they install Ansible, ansible-lint, Chromium, debootstrap, gpg, Neovim, npm, PostgreSQL, sqlite3, ssh, shells and
# shellcheck, and make Debians to run in; test-long also promtool.
GO        ?= go
PACKAGES   = ./...
# All targets have the same flags, so that none repeats what go has cached of another. make
# lint vets.
TEST       = $(GO) run ./internal/testing/gotest
# Test programs are linked without what debuggers read: a tenth of the time of processors that the
# tests take is linking.
FLAGS      = -vet=off -ldflags "-s -w" -timeout 60m
# Packages with tests that only make test-all runs, by their names.
SLOW       = $$(git grep -l '^func TestSlow' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's|^|./|')
# Go files that may have wider lines, or more of them: tables of tests, SQL and the catalogue of diagnostics.
UNWRAPPED  = -e _test.go -e ^internal/testing/ -e ^hub/dashboards/ -e ^examples/ -e ^compiler/diag/catalogue.go
EXAMPLE   ?= hello-world
# Scripts that build, start and end a Kubernetes API server with Flux and Argo CD, and the folder
# that they build in.
CONSUMERS     ?= $(wildcard ../shared/consumers)
CONSUMERS_DIR ?= $(abspath ../consumers)
export CGO_ENABLED = 0
# A hook of git says where its repository is; tests have others.
unexport GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_OBJECT_DIRECTORY GIT_COMMON_DIR

.PHONY: build test test-all test-long fuzz lint bench example hub-demo docs

build: ## the binary, in bin/
	$(GO) build -ldflags "-s -w" -o bin/kalypso ./cmd/kalypso

example: build ## compile an example platform into out/, and show what came out
	./bin/kalypso build -C examples/$(EXAMPLE) --to $(CURDIR)/out/$(EXAMPLE)
	@find out/$(EXAMPLE) -name '*.yaml' | sort

hub-demo: ## a hub with 200 simulated clusters, a release that breaks 27 of them, and pages to look at until it is interrupted
	$(GO) run ./examples/hub/demo

test: ## the tests; lists those that test-all runs, and what they need
	$(TEST) -- $(FLAGS) $(PACKAGES)

test-all: ## all tests: also the slow ones, with real Debians, and in a home that somebody uses; a skipped one is a failure
	.ci/tools
	$(TEST) -all -- $(FLAGS) $(PACKAGES)
	KALYPSO_ALL=1 $(TEST) -all -- $(FLAGS) -run '^TestSlow' $(SLOW)
	KALYPSO_ALL=1 .ci/used-home

test-long: ## all tests, with random platforms and histories by the hundred, real reconcilers where CONSUMERS has them, and half a minute of fuzzing for each target: hours
	.ci/tools long
	@test -n "$(CONSUMERS)" || echo "CONSUMERS has no real reconcilers: that a hub knows what Flux and Argo CD do is not tested with them"
	test -z "$(CONSUMERS)" || $(CONSUMERS)/build $(CONSUMERS_DIR)
	KALYPSO_ALL=1 KALYPSO_LONG=1 KALYPSO_TEST_CONSUMERS=$(abspath $(CONSUMERS)) KALYPSO_TEST_CONSUMERS_DIR=$(CONSUMERS_DIR) $(TEST) -all -- -timeout 6h $(PACKAGES)
	$(GO) run ./internal/testing/fuzz -each 30s -dependencies

fuzz: ## run each fuzz target for 3s; FUZZ='-each=1m -match=internal/git' for others
	$(GO) run ./internal/testing/fuzz $(FUZZ)

lint: ## no line is over 100 columns and no file over 500 lines, comments are in plain English, gofmt, go vet and staticcheck are clean, and all linked modules have licences of .ci/licences.json; the tests look at the CUE files
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); exit 1; }
	@! git ls-files '*.go' | grep -v $(UNWRAPPED) | xargs awk 'length > 100 && !/`/ && !/^\/\/\t/ { print FILENAME ":" FNR ": wider than 100 columns"; bad = 1 } END { exit !bad }'
	@! git ls-files '*.go' | grep -v $(UNWRAPPED) | xargs wc -l | awk '$$1 > 500 && $$2 != "total" { print $$2 ": over 500 lines"; bad = 1 } END { exit !bad }'
	$(GO) run ./internal/testing/english -comments
	$(GO) vet $(PACKAGES)
	$(GO) tool staticcheck $(PACKAGES)
	$(GO) list -m -json $$($(GO) list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}' ./cmd/... | sort -u) | \
	  $(GO) tool go-licence-detector -includeIndirect -rules .ci/licences.json -overrides .ci/licence-files.json

bench: ## what builds of generated platforms cost, beside the budgets; BENCH=-quick for small ones
	$(GO) test -run '^$$' -short -bench . -benchtime 200ms -benchmem ./compiler/... ./backends/...
	$(GO) run ./internal/testing/bench $(BENCH)
	$(GO) run ./internal/testing/hubbench $(HUBBENCH)

docs: ## write the generated pages of docs/ anew
	KALYPSO_ALL=1 KALYPSO_UPDATE=1 $(GO) test ./backends ./cmd/kalypso ./view/platform ./examples/hub/demo -run '^Test(Table|Docs|SlowDocs|SlowPictures|SlowDemo|Reference)$$'
