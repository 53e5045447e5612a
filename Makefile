# The commands of this project; «make help» lists them. Programs that the checks need are built into
# Go's own cache, outside this folder.

TOOL   = go tool -modfile=tools/go.mod
MODULE = github.com/sluice-queue/sluice
# The race detector, in all that is Go by hand. SQLite is C that was translated, keeps its data where the
# detector does not look, and is more than five times slower under it.
RACE = -race -gcflags=modernc.org/...=-race=false
# The packages whose tests must reach the bound of the coverage report. That of the store in memory is taken
# without the race detector, under which each count is a call and a simulation takes much longer.
COVERED_RACING = $(MODULE) $(MODULE)/worker $(MODULE)/upkeep $(MODULE)/store/sqlite $(MODULE)/store/postgres
COVERED_PLAIN  = $(MODULE)/store/memory
comma = ,
empty =
listed = $(subst $(empty) $(empty),$(comma),$(strip $(1)))
SOAK    = 10m
# The reference systems: modules of their own, users of the library.
APPS = apps/payments apps/workflows apps/conversations apps/ingredients

# Everything but the race detector does without C, as what is shipped is built: so nothing is compiled twice. The
# testbed turns it on for the commands that it runs.
export CGO_ENABLED = 0

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# What Temporal is built of is linted after the tests: by then it is compiled, beside them.
.PHONY: test
test: tidy lint-sluice cross race cover lint-temporal bench-test apps-test deploy-test vuln ## Everything that must hold; about eleven minutes on two idle cores

# Three packages at once, because many tests wait for processes and servers. The linter has vetted them.
.PHONY: race
race: ## The tests with the race detector, a soak, and the coverage they reach
	go run ./internal/testbed -temporal go test $(RACE) -vet=off -p=3 -shuffle=on -timeout=20m -coverpkg=$(call listed,$(COVERED_RACING)) -coverprofile=coverage.out ./...
	go run ./internal/coverage -profile=coverage.out -least=85 $(COVERED_RACING)

.PHONY: cover
cover: ## The coverage of the store in memory, without the race detector
	go test -vet=off -coverpkg=$(call listed,$(COVERED_PLAIN)) -coverprofile=coverage.out $(COVERED_PLAIN)
	go run ./internal/coverage -profile=coverage.out -least=85 $(COVERED_PLAIN)

.PHONY: soak
soak: ## Only the soak, for as long as SOAK says (make soak SOAK=1h)
	go run ./internal/testbed go test -timeout=0 -v -run=Soak ./internal/faulttest -soak=$(SOAK)

.PHONY: quick
quick: ## The tests without the race detector and the long ones
	go test -short ./...

.PHONY: lint
lint: lint-sluice lint-temporal ## Format and lint, without changing anything

.PHONY: lint-sluice
lint-sluice:
	$(TOOL) golangci-lint run ./...
	cd bench && go tool -modfile=../tools/go.mod golangci-lint run ./...
	cd deploy && go tool -modfile=../tools/go.mod golangci-lint run ./...
	set -e; for app in $(APPS); do (cd $$app && go tool -modfile=../../tools/go.mod golangci-lint run ./...); done

.PHONY: lint-temporal
lint-temporal:
	cd tools/temporal && go tool -modfile=../go.mod golangci-lint run ./...

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) golangci-lint fmt ./...
	cd bench && go tool -modfile=../tools/go.mod golangci-lint fmt ./...
	cd deploy && go tool -modfile=../tools/go.mod golangci-lint fmt ./...
	set -e; for app in $(APPS); do (cd $$app && go tool -modfile=../../tools/go.mod golangci-lint fmt ./...); done
	cd tools/temporal && go tool -modfile=../go.mod golangci-lint fmt ./...

.PHONY: tidy
tidy: ## Check that the module files say what the code needs
	go mod tidy -diff
	go mod verify
	cd bench && go mod tidy -diff
	cd deploy && go mod tidy -diff
	set -e; for app in $(APPS); do (cd $$app && go mod tidy -diff); done
	cd tools/temporal && go mod tidy -diff
	cd tools/rules && go mod tidy -diff && go vet ./...

.PHONY: cross
cross: ## Build the command for other systems, without C
	GOOS=darwin GOARCH=arm64 go build -o /dev/null ./cmd/sluice
	GOOS=windows GOARCH=amd64 go build -o /dev/null ./cmd/sluice

.PHONY: docs
docs: ## Write the parts of the documents that are made from the code
	go test . ./cli -run TestDocs -update

.PHONY: rules
rules: ## Write the rules of package scrub that are made from those of gitleaks
	cd tools/rules && go run .

.PHONY: plans
plans: ## Write the query plans of claims that the tests compare with; made by PostgreSQL 15
	go run ./internal/testbed go test ./store/sqlite ./store/postgres -run PlansOfClaims -update

# What the server is started with; TEMPORAL=-help lists what there is.
TEMPORAL = -port 7233 -ui-port 8233

.PHONY: temporal
temporal: ## Run a Temporal server with its web UI on loopback; built once, in about four minutes
	go run ./internal/temporald $(TEMPORAL)

.PHONY: bench
bench: ## Measure against the peers and write docs/benchmarks.md; about half an hour
	cd bench && go run .

.PHONY: bench-test
bench-test: ## Check the benchmarks' own code
	cd bench && go test ./...
	cd bench/riversqlite && go vet ./...

.PHONY: apps-test
apps-test: ## Run the reference systems for real, small
	set -e; for app in $(APPS); do (cd $$app && go test ./...); done

.PHONY: deploy-test
deploy-test: ## Check the image, the unit and the manifests, and start what is in them
	cd deploy && go test ./...

# govulncheck exits with 3 when it found something. Where the vulnerability data cannot be had, the
# check is left out, and says so.
.PHONY: vuln
vuln: ## Look for known vulnerabilities, where the data can be had
	@out=$$($(TOOL) govulncheck ./... 2>&1); code=$$?; echo "$$out"; \
	case "$$code/$$out" in \
	0/*) ;; \
	1/*"fetching vulnerabilities"*) echo "vulnerabilities: NOT CHECKED, the data cannot be had here" ;; \
	*) exit $$code ;; \
	esac
