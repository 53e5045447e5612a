# The commands of this project; `make help` lists them. Programs that the checks need are built into
# Go's own cache, outside this folder.

TOOL   = GOWORK=off go tool -modfile=tools/go.mod
MODULE = github.com/sluice-queue/sluice
# The library is one released module; its parts, the program and the engine of Temporal, are two more. go.work ties them.
PARTS = cmd engine/temporal
RELEASED = ./... $(PARTS:%=./%/...)
# The race detector, in all that is Go by hand. SQLite is C that was translated, keeps its data where the
# detector does not look, and is more than five times slower under it.
RACE = -race -gcflags=modernc.org/...=-race=false
# The packages whose tests must reach the bound of the coverage report. Under the race detector each count is a call, so
# only packages that wait for SQL are counted there. The others are counted without it, by the tests of COVERING too: Go
# keeps the result of tests whose code and files did not change. Much of the root is run by the features that read it.
COVERED_RACING = $(MODULE)/store/sqlite $(MODULE)/store/postgres
COVERED_PLAIN  = $(MODULE) $(MODULE)/worker $(MODULE)/upkeep $(MODULE)/store/memory
COVERING       = $(addprefix $(MODULE)/,dispatcher engine/local alert changes deadletter explain forecast health operation search stat tenancy)
# Packages whose tests are the command, simulated hours, or processes that are killed: all in them that runs beside each
# other is under the race detector in the packages that it is made of, and with it they take three times as long. To run
# them with it too: make race WITHOUT_RACE=
WITHOUT_RACE = $(addprefix $(MODULE)/,cmd/cli cmd/internal/sim cmd/internal/crashtest internal/faulttest store/storetest)
# Tests whose Go code of ours is under the race detector in other tests, which costs 3 times the CPU: the rules by SQL
# functions, those over HTTP (they are under it without HTTP, and those of jobs over HTTP too), rows that SQL
# changes with their jobs, and random sequences and long texts, of which it sees only one goroutine. Random requests and long
# bodies come one by one too: FuzzRequest and TestEachRouteIsForItsRolesAlone send each route requests under it, and the rules
# of jobs send bodies. They are run without it, by step one-by-one. A name that is not here is raced.
ONE_BY_ONE = ^(TestStoreOverHTTPObeysTheRulesOn(SQLite|Postgres)WhileConnectionsBreak$(strip \
	)|TestNoRequestFailsTheServer|TestJobsThatTogetherAreLargerThanARequestAreStored$(strip \
	)|TestRowsFollowTheirJobs|TestWorkGrowsWithTheText|TestRecallOnACorpus|TestFunctions(ObeyTheRules|AgreeWithTheModel|KeepLimitsAndGetNothingStuck)$(strip \
	)|Test(SQLite|Postgres)(AgreesWithTheModel|AgreesWithTheModelOfLimits|KeepsLimitsAndGetsNothingStuck))$$
ONE_BY_ONE_IN = ./cmd/httpapi ./store/postgres ./store/sqlite ./scrub
# Tests that step cover runs without the race detector anyway, which would see nothing in them: they read the files of the
# project, or let simulated weeks pass in packages whose other tests are raced.
COVERED_ALONE = ^Test(NoJunkDrawersAndNothingLeftOpen|NothingElseIsLogged|RetiredNamesStayAway|EveryExportedNameIsDocumented$(strip \
	)|FilesAndFunctionsStaySmall|WordsOfExportedNamesAreKnown|TermsAreUsed|(Pages|SQLComments|CommentsOfTests)AreInPlainEnglish$(strip \
	)|MessageThatIsGivenUpIsADeadLetterWithoutAnAlertOfItsOwn|WindowCountsEachDayOverTheChangeOfClocks)$$
# Those whose tests take longest begin first.
LONGEST = ./store/postgres ./cmd/httpapi ./engine/temporal ./store/sqlite ./move ./upkeep ./dispatcher
comma = ,
empty =
listed = $(subst $(empty) $(empty),$(comma),$(strip $(1)))
SOAK = 10m
# Modules that are not released, users of the library. Each is tidied, linted and tested; one line adds one.
MODULES = \
	apps/payments \
	apps/workflows \
	apps/conversations \
	apps/ingredients \
	browser \
	clients \
	compat \
	deploy \
	bench
# The servers of tests are only formatted: to lint Temporal takes compiling the whole of it once more.
LINTED = . $(PARTS) $(MODULES)
FORMATTED = $(LINTED) tools/temporal tools/oidc
# All that must hold, as steps of which up to STEPS run at a time, while processors are idle. The longest come first, and among them the browser and the clients, whose
# tests wait more than they compute. On a machine that has built nothing yet, Temporal is built for the others while IPFS is.
EARLY = test/browser test/clients test/apps/conversations
HOLDS = race test/browser plain test/clients one-by-one test/apps/conversations lint $(filter-out $(EARLY),$(MODULES:%=test/%)) cross cover tidy vuln
STEPS = 3

# Everything but the race detector does without C, as what is shipped is built: so nothing is compiled twice.
export CGO_ENABLED = 0
# A hundred programs are linked, which without what a debugger reads takes two thirds of the time. Without the folder's name in
# them, another clone finds them in Go's cache: that saves 2.5 minutes of CPU.
export GOFLAGS := $(strip $(GOFLAGS) -ldflags=-w -trimpath)
# Go collects garbage a quarter as often as it would, in the compiler, the tests and the servers: a tenth of all CPU. What holds
# more than GOMEMLIMIT is collected as ever.
export GOGC ?= 400
export GOMEMLIMIT ?= 2GiB
# A program with the race detector sleeps for a second at its end, unless told otherwise. There are a hundred.
export GORACE ?= atexit_sleep_ms=50

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: test
test: ## Everything that must hold
	go run ./internal/testbed -temporal -steps=$(STEPS) $(HOLDS)

# Some packages at once, because many tests wait for processes and servers. The linter has vetted them. It is one of the
# steps of test: alone it finds or starts servers for itself.
.PHONY: race
race: ## The tests with the race detector, a soak, and the coverage of the stores
	CGO_ENABLED=1 go test $(RACE) -vet=off -p=2 -shuffle=on -timeout=60m -skip='$(ONE_BY_ONE)|$(COVERED_ALONE)' -coverpkg=$(call listed,$(COVERED_RACING)) -coverprofile=coverage.out $(LONGEST) $$(go list $(RELEASED) | grep -vxF $(patsubst %,-e %,- $(WITHOUT_RACE)))
	go run ./internal/coverage -profile=coverage.out -least=85 $(COVERED_RACING)

.PHONY: plain
plain: ## The tests without the race detector: of the command, of simulations, and of processes that die
	go test -vet=off -p=1 -shuffle=on -timeout=60m $(WITHOUT_RACE)

.PHONY: one-by-one
one-by-one: ## Without the race detector: rules by SQL functions and over HTTP, and random sequences
	go test -vet=off -p=1 -shuffle=on -timeout=60m -run='$(ONE_BY_ONE)' $(ONE_BY_ONE_IN)

.PHONY: cover
cover: ## The coverage of the library and of the store in memory, without the race detector
	go test -vet=off -coverpkg=$(call listed,$(COVERED_PLAIN)) -coverprofile=coverage-plain.out $(COVERED_PLAIN) $(COVERING)
	go run ./internal/coverage -profile=coverage-plain.out -least=85 $(COVERED_PLAIN)

# The tests of a module of its own. The linter vets it. Go keeps no result of theirs: they build and run programs, and Go does
# not know what of.
.PHONY: $(MODULES:%=test/%)
$(MODULES:%=test/%):
	cd $(@:test/%=%) && go test -vet=off -count=1 -timeout=60m ./...

# Its tests start an IPFS node. Built beside each other, they would all build it.
test/apps/conversations: ipfs
.PHONY: ipfs
ipfs: ## Build the IPFS node of apps/conversations; once, in about two minutes
	cd tools/ipfs && GOWORK=off GOFLAGS='-tags=nofuse -buildvcs=false' go tool -n ipfs

# mattn's driver is SQLite in C.
test/compat: export CGO_ENABLED = 1

.PHONY: soak
soak: ## Only the soak, for as long as SOAK says (make soak SOAK=1h)
	go run ./internal/testbed go test -timeout=0 -v -run=Soak ./internal/faulttest -soak=$(SOAK)

# Left out are processes that are killed, simulated hours and weeks, servers that are restarted, the scripts of the command
# and the commands of the documents, the rules once more by the SQL functions and over HTTP, random sequences on the SQL
# stores, and plans of tables that are filled.
SLOW_PACKAGES = crashtest$$|faulttest$$|internal/sim$$|internal/export$$
SLOW_TESTS = $(ONE_BY_ONE)|^TestStoreOverHTTPObeysTheRules|^TestNoRequestFails|^Test(Scripts|DocsRun|InlineCommandsOfTheDocsRun|Troubles|Serve|MessageThatIsGivenUp|ManySchedulesOfOneInstant)|^TestClaimsWalkInOrder|^TestFailover|^TestPoolerIsNoticed|^TestHealthFindsWhatIsWrong|^TestNoPlanHangsOnStatistics|^TestPlansOf
.PHONY: quick
quick: ## What to run after each change: most tests, without the race detector; Go keeps the results of those that it does not touch
	go run ./internal/testbed go test -short -vet=off -p=3 -skip='$(SLOW_TESTS)' $$(go list $(RELEASED) | grep -vE '$(SLOW_PACKAGES)')

# The linter is built once, and then run in each module: it takes one at a time.
.PHONY: lint
lint: ## Format and lint, without changing anything
	set -e; lint=$$($(TOOL) -n golangci-lint); for module in $(LINTED); do (cd $$module && $$lint run --allow-parallel-runners ./...); done; \
	cd tools/temporal && $$lint fmt --diff

.PHONY: fmt
fmt: ## Format the code
	set -e; lint=$$($(TOOL) -n golangci-lint); for module in $(FORMATTED); do (cd $$module && $$lint fmt ./...); done

# A part requires the other modules at a version that may not be released yet. To tidy it, Go is told where they are.
REPLACED = -replace=$(MODULE)=$(CURDIR) -replace=$(MODULE)/engine/temporal=$(CURDIR)/engine/temporal
UNREPLACED = -dropreplace=$(MODULE) -dropreplace=$(MODULE)/engine/temporal
.PHONY: tidy
tidy: export GOWORK = off
tidy: ## Check that the module files say what the code needs
	go mod verify
	set -e; for module in $(filter-out $(PARTS),$(FORMATTED)) tools/rules; do (cd $$module && go mod tidy -diff); done
	set -e; for module in $(PARTS); do (cd $$module; mods=$$(mktemp -d); trap 'rm -r $$mods' EXIT; cp go.mod go.sum $$mods; \
		go mod edit $(REPLACED) $$mods/go.mod; go mod tidy -modfile=$$mods/go.mod -diff); done
	cd tools/rules && go vet ./...
	cd bench/riversqlite && go vet ./...

.PHONY: mod
mod: export GOWORK = off
mod: ## Write the module files by what the code needs
	set -e; for module in $(filter-out $(PARTS),$(FORMATTED)) tools/rules; do (cd $$module && go mod tidy); done
	set -e; for module in $(PARTS); do (cd $$module; go mod edit $(REPLACED); go mod tidy; go mod edit $(UNREPLACED)); done

.PHONY: cross
cross: ## Check that the command compiles for other systems, one of 32 bits, without C
	go run -C tools ./typecheck $(CURDIR) ./cmd/sluice darwin/arm64 windows/amd64 linux/arm

.PHONY: docs
docs: ## Write the parts of the documents that are made from the code
	go test . ./cmd/metric ./cmd/internal/export ./cmd/httpapi ./cmd/cli -run TestDocs -update

# Pictures of all pages go into SHOTS, and those that documents show into docs/images.
SHOTS = /tmp/sluice-screenshots
SHOWN = jobs-light waiting-dark alerts-light waves-by-tenant-light dead-light queue-light
.PHONY: screenshots
screenshots: ## Take pictures of all pages of the console, into SHOTS, and those of the documents
	mkdir -p $(SHOTS) && cd browser && go test -vet=off -count=1 -run='TestEachPage|TestAJobIs|TestPictures' -shots=$(abspath $(SHOTS)) .
	cp $(SHOWN:%=$(SHOTS)/console-%.png) docs/images

.PHONY: vendor
vendor: ## Get what the console uses of others: htmx and uPlot
	tools/vendor.sh

.PHONY: rules
rules: ## Write the rules of package scrub that are made from those of gitleaks
	cd tools/rules && go run .

.PHONY: plans
plans: ## Write the query plans of claims that the tests compare with; made by PostgreSQL 15
	go run ./internal/testbed go test ./store/sqlite ./store/postgres -run "PlansAre|PlansOfTheHistory" -update

# What the server is started with; TEMPORAL=-help lists what there is.
TEMPORAL = -port 7233 -ui-port 8233

.PHONY: temporal
temporal: ## Run a Temporal server with its web UI on loopback; built once, in about four minutes
	go run ./internal/temporald $(TEMPORAL)

.PHONY: bench
bench: ## Measure against the peers and write docs/benchmarks.md; about half an hour
	cd bench && go run .

.PHONY: bench-test
bench-test: test/bench ## Check the benchmarks' own code

.PHONY: apps-test
apps-test: $(filter test/apps/%,$(MODULES:%=test/%)) ## Run the reference systems for real, small

.PHONY: deploy-test
deploy-test: test/deploy ## Check the image, the unit and the manifests, and start what is in them

# The modules are looked up first, which is quick and finds at least as much; what the program calls only where a module
# has something. govulncheck exits with 3 when it found something. Where the vulnerability data cannot be had, the check
# is left out, and says so.
.PHONY: vuln
vuln: ## Look for known vulnerabilities, where the data can be had
	@look=$$($(TOOL) -n govulncheck) || exit; for module in . cmd/sluice engine/temporal; do cd $(CURDIR)/$$module; \
	out=$$($$look -scan=module 2>&1); code=$$?; if [ $$code = 3 ]; then out=$$($$look ./... 2>&1); code=$$?; fi; echo "$$out"; \
	case "$$code/$$out" in \
	0/*) ;; \
	1/*"fetching vulnerabilities"*) echo "vulnerabilities of $$module: NOT CHECKED, the data cannot be had here" ;; \
	*) exit $$code ;; \
	esac; done
