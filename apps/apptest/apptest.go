// Package apptest is what the tests of the reference systems share: who asks a monitor, and processes that move jobs
// until they are killed.
package apptest

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
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

// Some acts on at most three jobs of a queue that are in a state. That others have moved them meanwhile is no failure.
func Some(ctx context.Context, client *sluice.Client, queue string, state sluice.State, act func(ids []sluice.ID) error) error {
	page, err := client.Jobs(ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{state}, Limit: 3})
	if err != nil || len(page.Jobs) == 0 {
		return err
	}
	var ids []sluice.ID
	for _, job := range page.Jobs {
		ids = append(ids, job.ID)
	}
	_ = act(ids)
	return nil
}
