package cli_test

import (
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// TestReconcileOverHTTPSettlesByTheEnginesOfTheServer ends some of more runs than fit into one request.
func TestReconcileOverHTTPSettlesByTheEnginesOfTheServer(t *testing.T) {
	t.Parallel()
	s := &scene{T: t, logger: slog.New(slog.DiscardHandler), db: "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")}
	s.open()
	runner := local.New(memory.New(memory.Options{}), local.Options{})
	engines := map[string]engine.Engine{"local": runner}
	s.queue("pay", func(settings *sluice.Settings) {
		settings.Engine, settings.RunType, settings.RunTaskQueue = "local", "pay", "pay"
	})
	const runs, ended = 130, 2
	s.add("pay", runs, sluice.EnqueueOptions{})
	s.dispatch(engines)
	under := func() (jobs []sluice.Job) {
		page, err := s.client.Jobs(t.Context(), sluice.JobFilter{Queue: "pay", States: []sluice.State{sluice.StateDispatched}, Limit: runs})
		s.ok(err)
		return page.Jobs
	}
	s.until("all runs are under way", func() bool { return len(under()) == runs })
	q, err := s.client.Queue(t.Context(), "pay")
	s.ok(err)
	_, target := engine.TargetAt("pay", q.Settings, engine.Location(q.Settings))
	jobs := under()
	for _, err := range runner.Terminate(t.Context(), target, []string{jobs[0].Ref, jobs[runs-1].Ref}, "test") {
		s.ok(err)
	}
	server := httptest.NewServer(httpapi.New(s.store, httpapi.Options{NoLogin: true, Engines: engines}))
	t.Cleanup(server.Close)
	reconcile := func(flags ...string) (judged []upkeep.Judged) {
		said, code := cli.Run(t.Context(), append([]string{"engine", "reconcile", "pay", "-o", "json", "--db", server.URL}, flags...)...)
		if err := json.Unmarshal([]byte(said), &judged); err != nil || code != 0 {
			t.Fatalf("%v ends with %d: %s", flags, code, said)
		}
		return judged
	}
	settled := func(judged []upkeep.Judged) (n int) {
		for _, j := range judged {
			if j.Job.Queue != "pay" || j.Job.State != sluice.StateDispatched || j.Run.Ref != j.Job.Ref {
				t.Errorf("the job is %+v, its run %+v", j.Job, j.Run)
			}
			if j.Event != "" && j.Reason == "the run cancelled" {
				n++
			}
		}
		return n
	}
	if judged := reconcile("--dry-run"); len(judged) != runs || settled(judged) != ended || len(under()) != runs {
		t.Errorf("the dry run tells of %d jobs and settles %d; %d are under way", len(judged), settled(judged), len(under()))
	}
	open := func() int {
		said, code := cli.Run(t.Context(), "jobs", "--where", "run:open", "--limit", "1000", "-o", "ids", "--db", server.URL)
		if code != 0 {
			t.Fatal(said)
		}
		return strings.Count(said, "\n")
	}
	if n := open(); n != runs {
		t.Errorf("run:open matches %d jobs, want %d", n, runs)
	}
	if judged := reconcile(); len(judged) != runs || settled(judged) != ended || len(under()) != runs-ended {
		t.Errorf("it tells of %d jobs and settles %d; %d are under way", len(judged), settled(judged), len(under()))
	}
	if n := open(); n != runs-ended {
		t.Errorf("afterwards run:open matches %d jobs, want %d", n, runs-ended)
	}
	if said, code := cli.Run(t.Context(), "engine", "reconcile", "pay", "--temporal", "127.0.0.1:1", "--db", server.URL); code != 2 || !strings.Contains(said, "--temporal: the server asks its own engines; leave it out") {
		t.Errorf("with an engine of its own it ends with %d: %s", code, said)
	}
	if said, code := cli.Run(t.Context(), "engine", "check", "pay", "-o", "json", "--db", server.URL); code != 7 || !strings.Contains(said, `"engine": "local"`) || !strings.Contains(said, "pay: no worker waits") {
		t.Errorf("the check ends with %d: %s", code, said)
	}
	if said, code := cli.Run(t.Context(), "ask-engine", under()[0].ID.String(), "--db", server.URL); code != 0 || !strings.Contains(said, "is running in the engine") {
		t.Errorf("asked for a run it ends with %d: %s", code, said)
	}
	if said, code := cli.Run(t.Context(), "engine", "reconcile", "nowhere", "--db", server.URL); code != 3 {
		t.Errorf("for no queue it ends with %d: %s", code, said)
	}
}

// TestDoctorOverHTTPSaysWhatItDidNotLookAt compares doctor on a file with doctor through the server of that file.
func TestDoctorOverHTTPSaysWhatItDidNotLookAt(t *testing.T) {
	t.Parallel()
	s := &scene{T: t, logger: slog.New(slog.DiscardHandler), db: "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")}
	s.open()
	s.queue("pay", func(settings *sluice.Settings) { settings.Engine = "local" })
	s.dispatch(map[string]engine.Engine{"local": local.New(memory.New(memory.Options{}), local.Options{})})
	_, err := batch.Open(t.Context(), s.store, batch.Batch{Name: "import"}, troubler)
	s.ok(err)
	id := s.add("pay", 1, sluice.EnqueueOptions{})
	s.becomes(id, func(j sluice.Job) bool { return j.State == sluice.StateDispatched })
	server := httptest.NewServer(httpapi.New(s.store, httpapi.Options{NoLogin: true}))
	t.Cleanup(server.Close)
	for _, args := range [][]string{{"engine", "check", "pay"}, {"ask-engine", id.String()}} {
		said, code := cli.Run(t.Context(), append(args, "--db", server.URL)...)
		if code != 3 || !strings.Contains(said, "the server has no engine of that name") || !strings.Contains(said, "start the server with --temporal or --engine") {
			t.Errorf("%v at a server without engines ends with %d: %s", args, code, said)
		}
	}
	named := regexp.MustCompile(`(?m)^[✔✖•] (\S+)`)
	checks := func(db string) (names string, notes map[string]bool) {
		said, code := cli.Run(t.Context(), "doctor", "--thorough", "--db", db)
		if !strings.Contains(said, "✖ follow      nobody follows the runs at the engine local") || code != 7 {
			t.Errorf("doctor of %s ends with %d:\n%s", db, code, said)
		}
		notes = make(map[string]bool)
		for _, line := range strings.Split(said, "\n") {
			if name, is := strings.CutPrefix(line, "• "); is && strings.Contains(line, "not looked at: ") {
				notes[strings.Fields(name)[0]] = true
			}
		}
		for _, found := range named.FindAllStringSubmatch(said, -1) {
			if found[1] != "orphan" { // part of the same look as integrity
				names += found[1] + " "
			}
		}
		return names, notes
	}
	here, none := checks(s.db)
	there, notes := checks(server.URL)
	if here != there || len(none) != 0 || len(notes) != 3 || !notes["audit"] || !notes["batches"] || !notes["integrity"] {
		t.Errorf("through the server doctor looks at %s\nand not at %v, on the file at %s\nand not at %v", there, notes, here, none)
	}
}
