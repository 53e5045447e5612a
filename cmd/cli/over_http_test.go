package cli_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// clock are the parts of outputs that the time of the call decides.
var clock = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d(:[\d.]+)?Z|"[a-z_]*(seconds|rate|per_second|progress)": *[\d.e-]+|\d+(\.\d+)?(ms|s|µs)\b`)

// anyID is an ID.
var anyID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// secret is the secret of a token, or the beginning of its hash.
var secret = regexp.MustCompile(`sluice_[A-Za-z0-9_-]{43}|"secret": "[0-9a-f]{8}"`)

// cause is the line of an error that says why.
var cause = regexp.MustCompile(`(?m)^ +why:.*\n`)

// answerOf gives what a command prints at an address, without IDs and what its time decides.
func answerOf(t *testing.T, db string, args ...string) (text string, code int) {
	t.Helper()
	return (&end{db: db}).answer(t, args...)
}

// end is a store or a server, with the last ID that it told.
type end struct{ db, id string }

// answer is answerOf. An argument ID is the last ID that was told.
func (e *end) answer(t *testing.T, args ...string) (text string, code int) {
	t.Helper()
	for i, arg := range args {
		if arg == "ID" {
			args = slices.Replace(slices.Clone(args), i, i+1, e.id)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sluice", args...)
	cmd.Env = append(os.Environ(), "SLUICE_DB="+e.db)
	out, _ := cmd.CombinedOutput()
	if id := anyID.FindString(string(out)); id != "" {
		e.id = id
	}
	out = secret.ReplaceAll(out, []byte("SECRET"))
	return clock.ReplaceAllString(anyID.ReplaceAllString(string(out), "ID"), "T"), cmd.ProcessState.ExitCode()
}

// sameOverHTTP are commands that only read, with the arguments to try. ID is an operation.
var sameOverHTTP = map[string]string{
	"jobs": "", "queues": "", "stats": "mail", "forecast": "mail", "operations ls": "", "operations get": "ID", "operations watch": "ID",
	"dead groups": "", "dead note": "9ac1f00d", "audit": "--limit 3", "batches ls": "", "flows ls": "", "tenants": "", "tiers": "", "limits ls": "", "schedules ls": "", "alerts history": "",
	"alerts ls": "", "alerts rules": "", "alerts silences": "", "audit head": "", "audit verify": "--head HEAD",
}

// writtenOverHTTP are commands that write, in the order in which to try them, each with its arguments after a colon.
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
	"tokens revoke: old --reason gone", "tokens revoke: old", "audit keep:", "audit keep: full=90d notable=0s --reason contract", "audit keep: full=1s", "audit keep: full=91d --reason -",
}

// readAfterwards are commands that show what writtenOverHTTP has written.
var readAfterwards = []string{"queues policy", "tenants", "tiers", "alerts rules", "alerts silences", "tokens ls", "audit keep", "audit --limit 100", "forecast mail"}

// TestWritesOverHTTPDoWhatTheyDoOnTheDatabase sends the same acts to a store and to the server of another.
func TestWritesOverHTTPDoWhatTheyDoOnTheDatabase(t *testing.T) {
	t.Parallel()
	var at [2]end
	for i := range at {
		db := "sqlite:" + filepath.Join(t.TempDir(), "jobs.db")
		run(t, db, "migrate")
		run(t, db, "enqueue", "mail", `{"to":"ada"}`, "--tenant", "acme")
		s := serve(t, db)
		s.becomes(t, 200, "upkeep")
		at[i].db = []string{db, s.url}[i]
	}
	for _, written := range writtenOverHTTP {
		name, rest, _ := strings.Cut(written, ":")
		args := strings.Fields(name + rest)
		here, code := at[0].answer(t, args...)
		there, other := at[1].answer(t, args...)
		if code != 0 { // the server words the cause
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

// TestReadsOverHTTPAreThoseOfTheDatabase compares what commands print of a store and of its server.
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
			for range 20 { // the server's upkeep may change a figure between the two
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

// untriedOverHTTP are commands that neither a test of this file nor a script tries over HTTP.
const untriedOverHTTP = "ask-engine, engine reconcile, limits undo, resolve, runs terminate, settings groups, settings schedule, settings scheduled, " +
	"settings unschedule, sim, top, wait"

// TestCommandsTriedOverHTTPExist keeps the lists true: every command that holds no others is in one of them.
func TestCommandsTriedOverHTTPExist(t *testing.T) {
	t.Parallel()
	there, leaves := make(map[string]bool), make(map[string]bool)
	var walk func(command *cobra.Command)
	walk = func(command *cobra.Command) {
		name := strings.TrimPrefix(command.CommandPath(), "sluice ")
		if there[name] = true; !command.HasSubCommands() {
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
		if !slices.Contains(listed, name) && !scripted(name) && !slices.Contains(strings.Split(untriedOverHTTP, ", "), name) && notOverHTTP[name] == "" {
			t.Errorf("say in a list of this file how `sluice %s` does over HTTP", name)
		}
	}
	for _, name := range strings.Split(untriedOverHTTP, ", ") {
		if slices.Contains(listed, name) {
			t.Errorf("`sluice %s` is tried: take it out of untriedOverHTTP", name)
		}
		listed = append(listed, name)
	}
	for _, name := range listed {
		if !there[name] || notOverHTTP[name] != "" {
			t.Errorf("`sluice %s` is no command, or one that the API does not do", name)
		}
	}
}
