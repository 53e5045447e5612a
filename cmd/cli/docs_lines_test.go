package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// docMark tells why TestDocsRun leaves matching lines of documents to other tests.
type docMark struct {
	path, line string // match by a part of the document's path and a part of the line
	file, test string // file has the test that runs the line, and test is a text in that file; empty: no test runs the line
	why        string
}

// maxLeft is the highest number of lines that no test runs.
const maxLeft = 8

// docMarks is searched from the top; the first match counts.
var docMarks = []docMark{
	{line: "sluice dev", file: "dev_test.go", test: "startDev(t)", why: "goes on until an interrupt"},
	{line: "go run ./cmd/sluice demo", file: "testdata/script/demo.txt", test: "sluice demo", why: "20,000 payments take half a minute; the script posts fewer"},
	{line: "sluice demo", file: "testdata/script/demo.txt", test: "sluice demo", why: "the same"},
	{line: "sluice sim --scenario payments-16h", file: "../internal/sim/sim_test.go", test: `shipped(t, "payments-16h")`, why: "half a million jobs; the test plays a twentieth"},
	{line: "sluice sim -f mine.yaml", file: "testdata/script/sim.txt", test: "sluice sim -f mine.yaml", why: "the same, from a file"},
	{line: "sluice wait ", file: "testdata/script/wait.txt", test: "sluice wait $DONE", why: "waits for a worker"},
	{line: " --wait 30s", file: "testdata/script/wait.txt", test: "--wait 1s", why: "the same"},
	{line: "sluice top", file: "../internal/top/top_test.go", test: "TestRunShowsTheScreenUntilThePersonLeaves", why: "needs a terminal"},
	{line: "sluice move --from sqlite:jobs.db --reopen", file: "testdata/script/move.txt", test: "--reopen", why: "needs a move that was broken off"},
	{path: "guide/start.md", line: "go ", file: "../../guide_test.go", test: "TestFirstProgramOfTheGuideRuns", why: "asks a server for modules; the test takes this folder"},
	{line: "go -C apps/payments run . demo", file: "../../apps/payments/demo/demo_test.go", test: "TestDemoHolds", why: "takes minutes; the test runs a small one"},
	{line: "go -C apps/workflows run . demo", file: "../../apps/workflows/demo/demo_test.go", test: "TestDemo", why: "takes minutes; the test runs a small one"},
	{line: "go -C apps/conversations run . demo", file: "../../apps/conversations/main_test.go", test: "TestDemoHolds", why: "takes minutes; the test runs a small one"},
	{line: "go -C apps/ingredients run . demo", file: "../../apps/ingredients/demo/demo_test.go", test: "TestDemoHolds", why: "takes minutes; the test runs a small one"},
	{line: "go -C apps/conversations build", why: "a chain is linked into it, which takes 12 s"},
	{line: "go -C apps/conversations run . bench", why: "takes a minute, and no test measures time; the demo's test shows that hooks exit with 0 and lose no event, the hook's that they keep the order"},
	{line: "-kafka localhost:9092", file: "../../apps/payments/kafka/kafka_test.go", test: "kfake", why: "needs a broker"},
	{line: "sluice holders drain", file: "testdata/script/holders.txt", test: "sluice holders drain", why: "needs processes of the version"},
	{path: "guide/deploy.md", line: "sluice work mail", file: "testdata/script/holders.txt", test: "--version 2", why: "the same"},
	{path: "guide/http.md", line: "curl -N", file: "../httpapi/live_test.go", test: "/stream?topics=", why: "a stream has no end"},
	{path: "guide/proxy.md", line: "curl https://jobs", file: "../../clients/proxy_test.go", test: "func (c *caller) waits", why: "needs a proxy"},
	{path: "guide/python.md", line: "pip install", file: "../../clients/python_test.go", test: "build_wheel", why: "installs on the machine"},
	{path: "guide/typescript.md", line: "npm ", file: "../../internal/clienttest/languages.go", test: `"npm", "pack"`, why: "installs on the machine"},
	{line: "curl localhost:8080/metrics", why: "asks the same process"},
	{line: "--tls-cert", file: "serve_api_test.go", test: "--tls-cert", why: "needs a certificate"},
	{line: "--oidc oidc.yaml", file: "serve_signin_test.go", test: `"--oidc", config`, why: "needs a provider"},
	{path: "guide/secure.md", line: "curl --cert", file: "serve_tls_test.go", test: `"--cert", "eu-worker.pem"`, why: "the same"},
	{path: "guide/secure.md", line: "cert=eu-worker.pem", file: "remote_tls_test.go", test: `"cert", "eu-worker.pem"`, why: "the same"},
	{path: "deploy/", line: "kubectl ", why: "needs a cluster"},
	{path: "guide/temporal.md", line: "sluice serve --engine", why: "needs a cluster with certificates"},
	{path: "guide/temporal.md", line: "sluice engine check billing.eu", why: "needs a cluster with TLS"},
}

// docExits maps patterns of lines to the exit codes that they may have besides, or instead of, 0.
var docExits = map[string][]int{
	`^sluice (doctor|alerts test|engine check)`: {0, 7}, // 7 tells that the command found something wrong
	`requeue --undo -`:                          {4, 6}, // the reader's store has none of the requeued jobs (4), or not all (6)
}

// docFiles are the files in the reader's folder.
var docFiles = map[string]string{
	"send-mail":           "#!/bin/sh\ncat\n",
	"generate-report":     "#!/bin/sh\necho '{\"of\":\"may\"}'\n",
	"report.json":         `{"of":"may"}`,
	"payment.schema.json": `{"type":"object"}`,
	"wave.jsonl":          `{"payload":{"cents":1},"delay":"10m"}` + "\n",
	"ready.jsonl":         `{"payload":{"cents":1},"delay":"10m","key":"ready-1"}` + "\n",
	"payments.json":       `[{"id":"p2","payer":"ada","payee":"bob","cents":1200,"currency":"EUR","due_at":"2096-12-24T16:00:00Z"}]`,
	"payments.ndjson":     `{"id":"p3","payer":"ada","payee":"bob","cents":1200,"currency":"EUR","due_at":"2096-12-24T16:00:00Z"}` + "\n",
	"secret":              "a long secret of webhooks",
	"eu.key":              "key",
}

// preparedStore makes a SQLite file that has an example of everything that commands ask for, and returns its path.
func preparedStore(t *testing.T) string {
	t.Helper()
	r := &docRun{scene: &scene{T: t, logger: slog.New(slog.DiscardHandler), db: "sqlite:" + filepath.Join(t.TempDir(), "prepared.db")}}
	r.open()
	for _, line := range []string{
		"settings set payments lease=1m max_attempts=3",
		"settings set payments lease=2m",
		"settings set mail lease=1m",
		"settings set reports lease=1m",
		"settings set events lease=1m",
		"settings set uploads lease=1m",
		"settings set imports lease=1m",
		"settings set resize lease=1m",
		"settings set mail.old lease=1m",
		"settings set payment engine=temporal run_type=PaymentExec run_task_queue=payment-exec run_timeout=1h",
		"tiers preset",
		"tiers add TIER",
		"tenants set acme --tier PRO",
		"tenants set TENANT --tier PRO",
		"alerts set dead-letters threshold=100",
		"alerts set dead-letters threshold=100 --queue mail",
		"enqueue payments {} --tenant acme --delay 2h",
		"enqueue mail {} --tenant acme --delay 2h --label kind=welcome",
	} {
		if printed, code := cli.Run(t.Context(), append([]string{"--db", r.db, "--reason", "prepared", "-q"}, strings.Fields(line)...)...); code != 0 {
			t.Fatalf("%s: %d\n%s", line, code, printed)
		}
	}
	for range 3 {
		r.job("payments", sluice.StateDead)
	}
	r.job("payments", sluice.StateCancelled)
	r.job("payment", sluice.StateUncertain)
	end := r.serve()
	r.until("the audit is sealed", func() bool {
		_, code := cli.Run(t.Context(), "audit", "head", "--db", r.db)
		return code == 0
	})
	end()
	r.ok(r.store.Close())
	return strings.TrimPrefix(r.db, "sqlite:")
}

// job makes a job in a state.
func (r *docRun) job(queue string, state sluice.State) sluice.ID {
	r.Helper()
	if strings.HasPrefix(queue, "fresh-") {
		return r.jobOf(queue, "", state) // other lines may have paused tenant acme elsewhere
	}
	return r.jobOf(queue, "acme", state)
}

// jobOf makes a job of a tenant in a state.
func (r *docRun) jobOf(queue, tenant string, state sluice.State) sluice.ID {
	r.Helper()
	receipt, err := r.client.Enqueue(r.Context(), sluice.NewJob{Queue: queue, Payload: json.RawMessage(`{"cents":100}`), EnqueueOptions: sluice.EnqueueOptions{
		Tenant: tenant, Priority: 1, DueAt: time.Now().Add(-time.Hour), Labels: map[string]string{"batch": "7"},
	}})
	r.ok(err)
	switch state {
	case sluice.StateQueued:
		return receipt.ID
	case sluice.StateCancelled:
		r.ok(r.client.Cancel(r.Context(), []sluice.ID{receipt.ID}, troubler))
		return receipt.ID
	}
	request := sluice.ClaimRequest{Queue: queue, Limit: 1, Holder: presence.NewID(), Lease: time.Minute, Token: sluice.NewToken()}
	if state != sluice.StateDead {
		request.Engine = "temporal"
	}
	claimed, err := r.store.Claim(r.Context(), request)
	r.ok(err)
	if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != receipt.ID {
		r.Fatalf("claimed %d jobs of %s", len(claimed.Jobs), queue)
	}
	settle := sluice.Settlement{ID: receipt.ID, Token: request.Token, Holder: request.Holder, Event: sluice.EventBury, Error: "connection refused"}
	if request.Engine != "" {
		settle.Event, settle.Ref = sluice.EventDispatch, "run-"+receipt.ID.String()
		errs, err := engine.Given(r.store).RecordIntent(r.Context(), []engine.Intent{{ID: receipt.ID, Token: request.Token, Ref: settle.Ref, Engine: request.Engine, Lease: time.Minute}})
		r.ok(err)
		r.ok(errs[0])
	}
	if state == sluice.StateUncertain {
		settle.Event, settle.Error = sluice.EventDoubt, "the engine has the run no more"
	}
	errs, err := r.store.Settle(r.Context(), []sluice.Settlement{settle})
	r.ok(err)
	r.ok(errs[0])
	return receipt.ID
}

// operation starts an operation, and brings it to a state.
func (r *docRun) operation(state operation.State) sluice.ID {
	r.Helper()
	o, err := operation.Start(r.Context(), r.store, operation.Operation{Kind: operation.KindCancel, Query: search.Query{Queue: "nothing"}}, troubler)
	r.ok(err)
	if state == operation.StatePaused {
		_, err = operation.Pause(r.Context(), r.store, o.ID, troubler)
		r.ok(err)
	}
	for state == operation.StateDone && !o.State.Ended() {
		o, _, err = operation.CarryOut(r.Context(), r.store, o, "ada", nil)
		r.ok(err)
	}
	return o.ID
}

// example matches the ids that documents use as examples.
var example = regexp.MustCompile(`01a1fb72(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\bJOB\b`)

// ids maps each command to the kind of thing whose id it wants. The first match counts.
var ids = []struct {
	line string
	make func(*docRun) sluice.ID
}{
	{`^sluice operations (watch|get)`, func(r *docRun) sluice.ID { return r.operation(operation.StateDone) }},
	{`^sluice operations resume`, func(r *docRun) sluice.ID { return r.operation(operation.StatePaused) }},
	{`^sluice operations`, func(r *docRun) sluice.ID { return r.operation(operation.StateRunning) }},
	{`^sluice alerts unsilence`, func(r *docRun) sluice.ID {
		silence, err := alert.StartSilence(r.Context(), r.store, alert.Silence{Rule: "unserved", During: time.Hour}, troubler)
		r.ok(err)
		return silence.ID
	}},
	{`^sluice flows show`, func(r *docRun) sluice.ID {
		id, err := flow.Start(r.Context(), r.store, flow.Flow{Name: "one", Nodes: []flow.Node{{Name: "a", Queue: r.fresh("")}}})
		r.ok(err)
		return id
	}},
	{`^sluice ask-engine`, func(r *docRun) sluice.ID { return r.job(r.fresh("temporal"), sluice.StateDispatched) }},
	{`^sluice runs terminate`, func(r *docRun) sluice.ID { // the run outlives its cancelled job
		id := r.job(r.fresh("temporal"), sluice.StateDispatched)
		r.ok(r.client.Cancel(r.Context(), []sluice.ID{id}, troubler))
		return id
	}},
	{`^sluice batches|--batch `, func(r *docRun) sluice.ID {
		b, err := batch.Open(r.Context(), r.store, batch.Batch{Name: "import"}, troubler)
		r.ok(err)
		return b.ID
	}},
	{`^sluice resolve`, func(r *docRun) sluice.ID { return r.job(r.fresh("temporal"), sluice.StateUncertain) }},
	{`^sluice release `, func(r *docRun) sluice.ID {
		id := r.job(r.fresh(""), sluice.StateQueued)
		r.ok(hold.Hold(r.Context(), r.store, []sluice.ID{id}, troubler))
		return id
	}},
	{`^sluice (dead|requeue|retry|job) `, func(r *docRun) sluice.ID { return r.job(r.fresh(""), sluice.StateDead) }},
	{``, func(r *docRun) sluice.ID { return r.job(r.fresh(""), sluice.StateQueued) }},
}

// fresh makes a queue that no other line has paused or limited.
func (r *docRun) fresh(engine string) string {
	name := "fresh-" + sluice.NewID().String()
	r.queue(name, func(s *sluice.Settings) {
		s.Engine = engine
		if engine != "" {
			s.RunType, s.RunTaskQueue = "PaymentExec", "payment-exec"
		}
	})
	return name
}

// given prepares the store for a line, and replaces its example ids with real ones.
func (r *docRun) given(line string) (text string, ended func()) {
	r.Helper()
	line = example.ReplaceAllStringFunc(line, func(string) string {
		for _, id := range ids {
			if regexp.MustCompile(id.line).MatchString(line) {
				return id.make(r).String()
			}
		}
		return ""
	})
	line = strings.ReplaceAll(line, "9ac1f00d", deadletter.Fingerprint("payments", "connection refused"))
	for _, need := range docNeeds {
		if regexp.MustCompile(need.line).MatchString(line) {
			line = need.give(r, line)
		}
	}
	if waiting.MatchString(line) && !strings.Contains(line, "--dry-run") {
		return line, r.serve()
	}
	return line, func() {}
}

// waiting matches commands that wait for upkeep or for a worker.
var waiting = regexp.MustCompile(`^sluice (dead|requeue|cancel|reschedule|hold|release) .*--(rate|canary)|^sluice (dead redrive|edit --all)`)

// serve runs upkeep and a worker, and returns the function that ends both.
func (r *docRun) serve() (end func()) {
	ctx, cancel := context.WithCancel(r.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = upkeep.New(r.store, upkeep.Options{Interval: 50 * time.Millisecond, Logger: r.logger}).Run(ctx)
	})
	running.Go(func() {
		w := worker.New(r.store, worker.Options{Poll: 50 * time.Millisecond, Logger: r.logger})
		worker.Handle(w, sluice.QueueOf[json.RawMessage]("payments"), nothing, worker.QueueOptions{})
		_ = w.Run(ctx)
	})
	return func() { cancel(); running.Wait() }
}

// docNeeds lists the other things that lines need besides ids.
var docNeeds = []struct {
	line string
	give func(r *docRun, line string) string
}{
	{`^sluice settings unschedule`, func(r *docRun, line string) string {
		queue, err := changes.Schedule(r.Context(), r.client, "payments", changes.Window{From: "16:00", To: "18:00", Zone: "UTC"}, map[string]string{"rate": "200/s"}, troubler)
		r.ok(err)
		return strings.Replace(line, " 7 ", fmt.Sprintf(" %d ", queue.Version), 1)
	}},
	{`^sluice audit verify --head`, func(r *docRun, line string) string {
		head, code := cli.Run(r.Context(), "audit", "head", "--db", r.db, "-q")
		if code != 0 {
			r.Fatal(head)
		}
		return regexp.MustCompile(`--head \S+`).ReplaceAllString(line, "--head "+strings.TrimSpace(head))
	}},
	{`^sluice (dead|requeue --all)`, func(r *docRun, line string) string {
		r.job("payments", sluice.StateDead)
		r.job("payments", sluice.StateDead)
		return line
	}},
	{`^sluice schedules`, func(r *docRun, line string) string {
		_, err := schedule.Ensure(r.Context(), r.store, []schedule.Schedule{{Name: "nightly", Definition: schedule.Definition{Queue: "reports", Cron: "@daily"}}}, troubler)
		r.ok(err)
		_, err = schedule.Pause(r.Context(), r.store, "nightly", "to have a change", troubler)
		r.ok(err)
		return line
	}},
	{`^sluice move`, func(r *docRun, line string) string {
		store, err := os.ReadFile(r.prepared)
		r.ok(err)
		r.ok(os.WriteFile(filepath.Join(r.folder, "jobs.db"), store, 0o600))
		return regexp.MustCompile(`--to \S+`).ReplaceAllString(line, "--to '"+pgtest.NewDatabase(r.T)+"'")
	}},
	{`^go -C apps/\w+ run \. `, func(r *docRun, line string) string {
		command := regexp.MustCompile(`^go -C (apps/\w+) run \. (\w+)`).FindStringSubmatch(line)
		r.place(command[1], func() string { // all lines share one build
			out, err := exec.CommandContext(r.Context(), "go", "-C", "../../"+command[1], "build", "-o", filepath.Join(r.folder, "app"), ".").CombinedOutput()
			if err != nil {
				r.Fatalf("%v\n%s", err, out)
			}
			return "app"
		})
		address := map[string]string{"apps/payments serve": "127.0.0.1:8080", "apps/workflows serve": "127.0.0.1:8086"}[command[1]+" "+command[2]]
		run := "./app " + command[2]
		if address != "" {
			run += " -temporal " + r.engineAddress("") + " -listen " + r.here(address)
		}
		return strings.Replace(line, command[0], run, 1)
	}},
	{`^curl |[|] curl `, func(r *docRun, line string) string {
		if strings.Contains(line, "/api/v1/") && len(r.background) == 0 {
			r.startLasting("sluice serve --listen " + r.here("127.0.0.1:7400"))
		}
		return strings.Replace(strings.Replace(line, "curl ", "curl -sS --fail-with-body ", 1), "/ID", "/"+r.places["ID"], 1)
	}},
	{`^sluice tokens (rotate|revoke) shop`, func(r *docRun, line string) string {
		_, _, _ = access.Create(r.Context(), r.store, access.Token{Name: "shop", Role: access.RoleProducer}, troubler) // fails if an earlier line has made the token
		return line
	}},
	{`^sluice tokens create`, func(r *docRun, line string) string {
		_ = access.Revoke(r.Context(), r.store, strings.Fields(line)[3], troubler) // an earlier line may have made the token
		return line
	}},
	{`^sluice serve`, func(r *docRun, line string) string {
		return line + " --listen " + r.here("127.0.0.1:7400")
	}},
	{`^sluice probe`, func(r *docRun, line string) string {
		if len(r.background) == 0 {
			r.startLasting("sluice serve --listen " + r.here("127.0.0.1:7400"))
		}
		if strings.Contains(line, "--url") {
			return line
		}
		return line + " --url http://" + r.here("127.0.0.1:7400")
	}},
	{`^sluice (ask-engine|engine|dispatch)`, func(r *docRun, line string) string {
		if strings.Contains(line, "--temporal") || strings.Contains(line, "--engine") {
			return line
		}
		return line + " --temporal " + r.engineAddress("")
	}},
}

// newReceiver starts a server that accepts notifications to webhooks, and returns its URL.
func newReceiver(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	t.Cleanup(server.Close)
	return server.URL
}
