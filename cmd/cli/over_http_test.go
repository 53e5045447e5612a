package cli_test

import (
	"cmp"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
)

// clock matches the parts of an output that depend on the time of the call, with the blanks that align them.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d(:[\d.]+)?Z|"[a-z_]*(seconds|rate|per_second|progress)": *[\d.e-]+| *(\d+m)?\d+(\.\d+)?(ms|s|µs)\b`)

// gap matches the blanks between columns. Their number depends on the widest time below.
var gap = regexp.MustCompile(` {3,}`)

// anyID matches an ID.
var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// anyProcess matches the ID of a process.
var anyProcess = regexp.MustCompile(`[\w.-]+:\d+:[0-9a-f]{8}\b`)

// secret matches the secret of a token, or the beginning of its hash.
var secret = regexp.MustCompile(`sluice_[A-Za-z0-9_-]{43}|"secret": "[0-9a-f]{8}"`)

// cause matches the line of an error that gives its reason.
var cause = regexp.MustCompile(`(?m)^ +why:.*\n`)

// answerOf returns the output of a command at an address, without IDs and without parts that depend on the time.
func answerOf(t *testing.T, db string, args ...string) (text string, code int) {
	t.Helper()
	return (&end{db: db}).answer(t, args...)
}

// end is a store or a server. Its map told replaces arguments: ID stands for the last ID that it printed, and other
// words stand for jobs.
type end struct {
	db   string
	told map[string]string
}

// answer is answerOf with arguments replaced by the map told.
func (e *end) answer(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = cmp.Or(e.told[arg], arg)
	}
	cmd := exec.CommandContext(t.Context(), "sluice", args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+e.db)
	out, _ := cmd.CombinedOutput()
	if id := anyID.FindString(string(out)); id != "" && e.told != nil {
		e.told["ID"] = id
	}
	out = anyProcess.ReplaceAll(secret.ReplaceAll(out, []byte("SECRET")), []byte("PROCESS"))
	text = clock.ReplaceAllString(anyID.ReplaceAllString(string(out), "ID"), "T")
	return gap.ReplaceAllString(text, "  "), cmd.ProcessState.ExitCode()
}

// sameOverHTTP lists commands that only read, with the arguments to try. ID stands for an operation.
var sameOverHTTP = map[string]string{
	"jobs": "", "queues": "", "stats": "mail", "forecast": "mail", "operations ls": "", "operations get": "ID", "operations watch": "ID",
	"dead groups": "", "dead note": "9ac1f00d", "audit": "--limit 3", "batches ls": "", "flows ls": "", "tenants": "", "tiers": "", "limits ls": "", "schedules ls": "", "alerts history": "",
	"alerts ls": "", "alerts rules": "", "alerts silences": "", "runs": "", "sim": "", "settings groups": "", "audit head": "", "audit verify": "--head HEAD",
}

// writtenOverHTTP lists commands that write, in the order in which the test tries them. The arguments stand after a
// colon.
var writtenOverHTTP = []string{
	"tiers add: gold", "tiers preset:", "tiers set: gold concurrency=7", "tiers set: gold rate=10/s burst=20 --queue mail",
	"tenants set: acme --tier gold", "tenants set: acme weight=3 --for 2h --reason moves", "tenants set: acme --tier iron", "pause: mail --tenant acme --reason moves",
	"tenants set: globex concurrency=2 --queue mail", "resume: mail --tenant acme", "resume: mail --tenant nobody", "tenants delete: globex", "tenants delete: globex",
	"tiers delete: FREE", "tiers add: gold",
	"holders quiesce: --all --reason deploy", "holders resume: --all --reason deployed", "holders stop: --version 7 --for 1h --reason deploy", "holders quiesce: nobody --reason x",
	"holders drain: --version 7 --reason deploy", "holders: --jobs", "queues policy:", "queues policy: --max 20 --reason few", "queues policy: --declared on --reason few", "queues policy: --max 0 --reason few",
	"alerts set: dead-letters threshold=7", "alerts set: calls metric=waiting threshold=9 --queue mail", "alerts disable: dead-letters", "alerts enable: dead-letters",
	"alerts set: dead-letters window=1s", "alerts reset: calls --queue mail", "alerts reset: calls --queue mail", "alerts test: dead-letters",
	"alerts silence: dead-letters --for 2h --reason moves", "alerts silence: --all --for 2h --reason moves", "alerts silence: nobody --for 2h --reason moves",
	"alerts silences:", "alerts unsilence: ID --reason moved", "alerts unsilence: ID --reason moved",
	"tokens create: ci --role viewer --queue mail.* --tenant eu-* --expires-in 90d --reason tests", "tokens create: ci --role admin", "tokens create: x --role king",
	"tokens create: x --role viewer --queue a*b", "tokens rotate: ci --overlap 1d --reason leaked", "tokens rotate: ci --overlap 31d", "tokens rotate: nobody", "tokens ls:", "tokens create: old --role admin -o json",
	"limits set: bank rate=5/s --reason few", "limits set: bank rate=500/s --reason more", "limits undo: bank --reason oops", "limits undo: nobody --reason oops",
	"settings set: jobs.* rate=5/s --reason few", "settings groups:", "settings schedule: mail rate=20/s --from 10:00 --to 18:00 --tz UTC --days DAY --reason busy", "settings set: mail lease=2m --revert-in 30d --reason slow",
	"settings scheduled:", "settings scheduled: mail", "settings unschedule: mail 2 --reason quick", "settings unschedule: mail 2 --reason quick", "settings schedule: mail rate=20/s --from 10:00 --to 18:00 --tz Mars",
	"resolve: DISPATCHED --completed --reason looked", "resolve: UNCERTAIN --failed --reason looked", "wait: UNCERTAIN",
	"runs terminate: DISPATCHED --reason hangs", "cancel: DISPATCHED --reason hangs", "runs:", "runs: payment -o json", "runs: nowhere", "runs terminate: DISPATCHED --reason hangs", "runs terminate: DISPATCHED", "wait: DISPATCHED",
	"tokens revoke: old --reason gone", "tokens revoke: old", "audit keep:", "audit keep: full=90d notable=0s --reason contract", "audit keep: full=1s", "audit keep: full=91d --reason -",
}

// readAfterwards lists commands that show the writes of writtenOverHTTP.
var readAfterwards = []string{"queues policy", "tenants", "tiers", "alerts rules", "alerts silences", "tokens ls", "audit keep", "limits ls", "settings scheduled", "settings groups", "runs", "audit --limit 100", "forecast mail"}

// TestWritesOverHTTPDoWhatTheyDoOnTheDatabase sends the same acts to a store directly, and to another store through its
// server.
func TestWritesOverHTTPDoWhatTheyDoOnTheDatabase(t *testing.T) {
	t.Parallel()
	var at [2]end
	for i := range at {
		db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
		run(t, db, "migrate")
		run(t, db, "enqueue", "mail", `{"to":"ada"}`, "--tenant", "acme")
		run(t, db, "settings", "set", "payment", "engine=temporal", "run_type=PaymentExec", "run_task_queue=payment-exec")
		for _, rule := range []string{"uncertain", "unserved", "success-rate", "dying", "stalled"} {
			run(t, db, "alerts", "disable", rule, "--reason", "it would fire at any time")
		}
		jobs := &docRun{scene: &scene{T: t, logger: slog.New(slog.DiscardHandler), db: db}}
		jobs.open()
		told := map[string]string{
			"DISPATCHED": jobs.job("payment", sluice.StateDispatched).String(), "UNCERTAIN": jobs.job("payment", sluice.StateUncertain).String(),
			"DAY": strings.ToLower(time.Now().UTC().AddDate(0, 0, 3).Format("Mon")),
		}
		s := serve(t, db)
		s.becomes(t, 200, "upkeep")
		at[i] = end{[]string{db, s.url}[i], told}
	}
	for _, written := range writtenOverHTTP {
		name, rest, _ := strings.Cut(written, ":")
		args := strings.Fields(name + rest)
		here, code := at[0].answer(t, args...)
		there, other := at[1].answer(t, args...)
		if code != 0 { // the server words the cause in its own way
			here, there = cause.ReplaceAllString(here, ""), cause.ReplaceAllString(there, "")
		}
		if here != there || code != other {
			t.Errorf("%v over HTTP: %d\n%s\non the database: %d\n%s", args, other, there, code, here)
		}
	}
	for _, read := range readAfterwards {
		args := append(strings.Fields(read), "-o", "json")
		here, _ := at[0].answer(t, args...)
		if there, _ := at[1].answer(t, args...); here != there || len(here) < 3 {
			t.Errorf("%v over HTTP:\n%s\non the database:\n%s", args, there, here)
		}
	}
}

// TestReadsOverHTTPAreThoseOfTheDatabase compares the output of commands on a store with their output on its server.
func TestReadsOverHTTPAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
	run(t, db, "migrate")
	for range 3 {
		run(t, db, "enqueue", "mail", `{"to":"ada"}`, "--tenant", "acme")
	}
	s := serve(t, db)
	began := run(t, s.url, "hold", "--all", "--queue", "mail", "--reason", "audit", "--detach", "-o", "json")
	id := anyID.FindString(began)
	run(t, s.url, "operations", "watch", id)
	run(t, s.url, "dead", "note", "9ac1f00d", "--text", "DNS", "--owner", "bo", "--resolved")
	run(t, s.url, "audit", "keep", "full=90d", "--reason", "seals, too")
	told := strings.NewReplacer("ID", id, "HEAD", strings.TrimSpace(run(t, s.url, "audit", "head")))
	for name, rest := range sameOverHTTP {
		args := strings.Fields(told.Replace(name + " " + rest))
		for _, args := range [][]string{args, append(args, "-o", "json")} {
			var here, there string
			for range 20 { // the server's upkeep may change a figure between the two reads
				var code, other int
				here, code = answerOf(t, db, args...)
				there, other = answerOf(t, s.url, args...)
				if code == 0 && other == 0 && here == there {
					break
				}
			}
			if here != there || here == "" {
				t.Errorf("%v over HTTP:\n%s\non the database:\n%s", args, there, here)
			}
		}
	}
}

// elsewhereOverHTTP lists commands that neither a test of this file nor a script tries over HTTP, each with the reason.
var elsewhereOverHTTP = map[string]string{
	"top":              "needs a terminal; the tests of package top show the screen through a server",
	"engine reconcile": "needs an engine at the server; the test in over_http_engine_test.go has one",
	"ask-engine":       "needs an engine at the server, as engine reconcile does",
}

// TestCommandsTriedOverHTTPExist checks that each command without subcommands is in one of the lists, and that each
// name in them exists.
func TestCommandsTriedOverHTTPExist(t *testing.T) {
	t.Parallel()
	there, leaves := make(map[string]bool), make(map[string]bool)
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		name := strings.TrimPrefix(command.CommandPath(), "sluice ")
		if there[name] = true; !command.HasSubCommands() || command.Args == nil && strings.Contains(command.Use, " ") {
			leaves[name] = true
		}
		for _, sub := range command.Commands() {
			walk(sub)
		}
	}
	walk(cli.Root())
	scripted := scriptedOverHTTP(t)
	listed := slices.Collect(maps.Keys(sameOverHTTP))
	for _, written := range writtenOverHTTP {
		name, _, _ := strings.Cut(written, ":")
		listed = append(listed, name)
	}
	for _, name := range slices.Sorted(maps.Keys(leaves)) {
		if !slices.Contains(listed, name) && !scripted(name) && elsewhereOverHTTP[name] == "" && notOverHTTP[name] == "" {
			t.Errorf("say in a list of this file how `sluice %s` does over HTTP", name)
		}
	}
	for name := range elsewhereOverHTTP {
		if slices.Contains(listed, name) {
			t.Errorf("`sluice %s` is tried: take it out of elsewhereOverHTTP", name)
		}
		listed = append(listed, name)
	}
	for _, name := range listed {
		if !there[name] || notOverHTTP[name] != "" {
			t.Errorf("`sluice %s` is no command, or one that the API does not do", name)
		}
	}
}
