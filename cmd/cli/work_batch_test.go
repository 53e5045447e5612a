package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/worker"
)

// answerer is a program for `sluice work --batch` that obeys the payloads. It notes in the file
// runs how many jobs it was given, or which job it crashed with.
func answerer() {
	note, err := os.OpenFile("runs", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	got := 0
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var job struct {
			ID         string `json:"id"`
			Attempt    int    `json:"attempt"`
			Checkpoint any    `json:"checkpoint"`
			Payload    struct {
				Do  string `json:"do"`
				Say string `json:"say"`
			} `json:"payload"`
		}
		if err := json.Unmarshal(lines.Bytes(), &job); err != nil {
			panic(err)
		}
		got++
		switch say := strings.ReplaceAll(job.Payload.Say, "ID", job.ID); job.Payload.Do {
		case "say":
			fmt.Println(say)
		case "say at last":
			if _, err := os.Stat(job.ID); job.Attempt == 1 && err != nil {
				_ = os.WriteFile(job.ID, nil, 0o600)
				fmt.Println(say)
			} else {
				fmt.Printf(`{"id": %q, "result": "%v"}`+"\n", job.ID, job.Checkpoint)
			}
		case "say without a line's end":
			defer fmt.Print(say)
		case "hang":
			time.Sleep(time.Minute)
		case "crash":
			_, _ = fmt.Fprintln(note, "crashed with", job.ID)
			_, _ = fmt.Fprintln(os.Stderr, "it is too much")
			os.Exit(3)
		case "try again", "give up":
			if _, err := os.Stat("again"); err == nil && job.Payload.Do == "try again" {
				fmt.Printf(`{"id": %q, "result": "at last"}`+"\n", job.ID)
				continue
			}
			if job.Payload.Do == "try again" {
				_ = os.WriteFile("again", nil, 0o600)
			}
			os.Exit(map[string]int{"try again": 75, "give up": 65}[job.Payload.Do])
		}
	}
	_, _ = fmt.Fprintln(note, "ended after", got)
}

// counts is a program that answers for every job, and crashes at the payload "bad". It notes in a file how many jobs it
// has answered for.
const counts = `n=0
while read -r line; do
	case $line in *'"bad"'*) echo "crashed after $n" >>"$0"; exit 3;; esac
	id=${line#*'"id":"'}; echo "{\"id\":\"${id%%'"'*}\",\"result\":null}"; n=$((n+1))
done
echo $n >>"$0"`

// TestJobsThatComeTogetherAreOneBatch runs on a fake clock, which stands still while a program has a job.
func TestJobsThatComeTogetherAreOneBatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size int
		jobs string
		runs string
		took time.Duration // the time for which the first job of a batch waits for others
	}{
		"fewer than a batch":               {100, "123456789", "9\n", 20 * time.Millisecond},
		"a batch does not wait for others": {3, "123", "3\n", 0},
		"more than a batch":                {3, "12345", "3\n2\n", 20 * time.Millisecond},
		"a crash":                          {100, "b", "crashed after 0\n", 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			note := filepath.Join(t.TempDir(), "runs")
			synctest.Test(t, func(t *testing.T) {
				handle := cli.Batch(c.size, "sh", "-c", counts, note)
				begun := time.Now()
				var wait sync.WaitGroup
				for _, job := range c.jobs {
					wait.Go(func() {
						payload := json.RawMessage(`"good"`)
						if job == 'b' {
							payload = json.RawMessage(`"bad"`)
						}
						claim := &sluice.Claim{Job: sluice.Job{ID: sluice.NewID()}}
						if err := handle(t.Context(), &worker.Job[json.RawMessage]{Claim: claim, Payload: payload}); (err != nil) != (job == 'b') {
							t.Errorf("job %c: %v", job, err)
						}
					})
				}
				wait.Wait()
				if took := time.Since(begun); took != c.took {
					t.Errorf("the jobs waited %s, want %s", took, c.took)
				}
			})
			if runs, err := os.ReadFile(note); err != nil || string(runs) != c.runs {
				t.Errorf("the runs had %q jobs, want %q: %v", runs, c.runs, err)
			}
		})
	}
}

func TestProgramIsSilentOnlyIfItWritesNothingAtAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		program, ctx := cli.Listen(30 * time.Second)
		for range 5 {
			time.Sleep(29 * time.Second)
			if _, err := program.Write([]byte(".")); err != nil || ctx.Err() != nil {
				t.Fatalf("it writes, and yet: %v, %v", err, context.Cause(ctx))
			}
		}
		time.Sleep(31 * time.Second)
		if cause := context.Cause(ctx); cause == nil || cause.Error() != "it gave no sign of life for 30s" {
			t.Errorf("it was silent, and yet: %v", cause)
		}
		if _, ctx := cli.Listen(0); ctx.Err() != nil {
			t.Errorf("without a bound it ends by %v", context.Cause(ctx))
		}
	})
}

func TestLinesOfAProgramAreReadStrictly(t *testing.T) {
	t.Parallel()
	for line, wrong := range map[string]string{
		`{"id": "1", "result": null}`:                                        "",
		`{"id": "1", "result": {"a": 12345678901234567890}}`:                 "",
		`{"id": "1", "error": "no", "retry_after": "10m"}`:                   "",
		`{"id": "1", "error": "no", "permanent": true}`:                      "",
		`{"id": "1", "release": "30s"}`:                                      "",
		`{"id": "1", "checkpoint": 3}`:                                       "",
		`{"id": "1", "progress": 0, "message": "page 1"}`:                    "",
		`{"id": "1", "progress": 1.1}`:                                       "from 0 to 1",
		`{"id": "1", "message": "page 1", "heartbeat": true}`:                "belongs to",
		`{"id": "1", "progress": 0.5, "result": 1}`:                          "more than one",
		`{"heartbeat": true}`:                                                "",
		`{"id": "1"}`:                                                        "none of",
		`{"id": "1", "heartbeat": false}`:                                    "none of",
		`{"id": "1", "error": ""}`:                                           "none of",
		`{"id": "1", "result": 1, "error": "no"}`:                            "more than one",
		`{"id": "1", "release": "30s", "checkpoint": 1}`:                     "more than one",
		`{"id": "1", "error": "no", "permanent": true, "retry_after": "1m"}`: "exclude each other",
		`{"id": "1", "result": 1, "permanent": true}`:                        "belong to",
		`{"id": "1", "error": "no", "retry_after": "soon"}`:                  "not a duration",
		`{"id": "1", "release": "30"}`:                                       "not a duration",
		`{"id": "1", "eror": "no"}`:                                          `unknown field "eror"`,
		`{"id": "1", "result": 1} {"id": "2", "result": 1}`:                  "more follows",
		`sending 3 mails`:                                                    "invalid character",
		`[]`:                                                                 "cannot unmarshal",

		`{"id": "1", "error": "no", "retry_after": "10m", "release": "10m", "a": {}}`: "unknown field",
	} {
		err := cli.CheckAnswer([]byte(line))
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: got %v, want %q", line, err, wrong)
		}
	}
}
