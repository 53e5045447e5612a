// Package apptest is what the tests of the reference systems share: who asks a monitor, and processes that move jobs
// until they are killed.
package apptest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/freeport"
)

// FreeAddress is one of loopback at which nobody listens, for a program that is told its own.
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// Answers waits until each path below url is answered with 200 and a text, such as "/healthz": "live". A program that has
// just started may need a moment until it has all to tell.
func Answers(t testing.TB, url string, texts map[string]string) {
	t.Helper()
	for path, want := range texts {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			code, text := get(t, url+path)
			if code == http.StatusOK && strings.Contains(text, want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s answers %d without %s:\n%s", path, code, want, text)
			}
		}
	}
}

// get gives what is answered; code 0 says that nobody does.
func get(t testing.TB, url string) (code int, text string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(body)
}

// moverVariable makes a test program move jobs until it is killed. It is the address of its database.
const moverVariable = "SLUICE_TEST_MOVER"

// MoveIfAsked makes moves in the database until the process is killed, if KillMover has started it. It stands first in
// TestMain.
func MoveIfAsked(open func(address string) (move func() error, err error)) {
	address := os.Getenv(moverVariable)
	if address == "" {
		return
	}
	move, err := open(address)
	for err == nil {
		err = move()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// KillMover lets another process make the moves of MoveIfAsked for a while, and kills it in the midst of one.
func KillMover(t testing.TB, address string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), moverVariable+"="+address)
	var out strings.Builder
	cmd.Stderr = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(500*time.Millisecond + rand.N(300*time.Millisecond))
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); !strings.Contains(fmt.Sprint(err), "killed") {
		t.Fatalf("the other process: %v\n%s", err, out.String())
	}
}

// Some acts on at most three jobs of a queue that are in a state. Jobs that others moved meanwhile are no failure.
func Some(ctx context.Context, client *sluice.Client, queue string, state sluice.State, act func(ids []sluice.ID) error) error {
	page, err := client.Jobs(ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{state}, Limit: 3})
	if err != nil || len(page.Jobs) == 0 {
		return err
	}
	var ids []sluice.ID
	for _, job := range page.Jobs {
		ids = append(ids, job.ID)
	}
	return unlessMoved(act(ids))
}

// unlessMoved passes on the error of an act, unless it only says that some jobs are in another state, or are deleted.
func unlessMoved(err error) error {
	var batch *sluice.BatchError
	if !errors.As(err, &batch) {
		return err
	}
	for _, refused := range batch.Failed {
		if !errors.Is(refused, sluice.ErrNotAllowed) && !errors.Is(refused, sluice.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Unseen lists those of some events of which the audit does not tell for any job of a queue. It shows whether moves that are
// chosen by chance, and may be refused, were all made.
func Unseen(ctx context.Context, client *sluice.Client, queue string, events ...sluice.Event) ([]sluice.Event, error) {
	unseen := slices.Clone(events)
	filter := sluice.AuditFilter{Object: audit.ObjectJob, Name: queue, Limit: 1000}
	for {
		entries, err := client.Audit(ctx, filter)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			filter.Before = e.Seq
			unseen = slices.DeleteFunc(unseen, func(event sluice.Event) bool { return event == e.Event })
		}
		if len(unseen) == 0 || len(entries) < filter.Limit {
			return unseen, nil
		}
	}
}
