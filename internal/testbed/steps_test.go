package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestStepsOfABusyMachineRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 0)
	m.began("a")
	m.look()
	m.look()
	if m.isBegun("b") {
		t.Error("a second step began beside the first, though no processor was idle")
	}
	m.end("a")
	m.began("b")
	m.end("b")
	m.began("c")
	m.end("c")
	m.allEnd()
}

func TestStepsOfAnIdleMachineRunBesideEachOther(t *testing.T) {
	t.Parallel()
	m := newMachine(t, 0.5)
	m.began("a")
	m.look()
	m.began("b")
	m.look()
	m.look()
	if m.isBegun("c") {
		t.Error("a third step began, though two may run at once")
	}
	m.end("b")
	for !m.isBegun("c") {
		m.look()
	}
	m.began("c")
	m.end("c")
	m.end("a")
	m.allEnd()
}

func TestIdleShareIsThatSinceTheLastLook(t *testing.T) {
	t.Parallel()
	got := spent("cpu  100 20 30 400 50 1 2 3 99 99\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
	if want := (processors{idled: 450, all: 606}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

// machine is a machine with three steps, a, b and c, of which two may run at once. A step tells that it began, and ends
// when the test lets it.
type machine struct {
	*testing.T
	folder string
	steps  *steps
	looks  chan time.Time
	told   *bufio.Reader
	ended  chan error
}

func newMachine(t *testing.T, idle float64) *machine {
	t.Helper()
	m := &machine{T: t, folder: t.TempDir(), looks: make(chan time.Time), ended: make(chan error, 1)}
	program, err := filepath.Abs("testdata/make")
	if err == nil {
		err = os.Symlink(program, filepath.Join(m.folder, "make"))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"told", "a", "b", "c"} {
		if err := syscall.Mkfifo(filepath.Join(m.folder, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	told, err := os.OpenFile(filepath.Join(m.folder, "told"), os.O_RDWR, 0) // its end never comes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = told.Close() })
	m.told = bufio.NewReader(told)
	m.steps = &steps{make: filepath.Join(m.folder, "make"), atOnce: 2, out: io.Discard, idle: func() float64 { return idle }, looks: m.looks}
	go func() { m.ended <- m.steps.run([]string{"a", "b", "c"}) }()
	return m
}

// look lets the steps ask how idle the machine is.
func (m *machine) look() { m.looks <- time.Time{} }

// began waits until the next step begins.
func (m *machine) began(want string) {
	m.Helper()
	line, err := m.told.ReadString('\n')
	if got := strings.TrimSpace(line); err != nil || got != want {
		m.Fatalf("step %q began: %v; want %s", got, err, want)
	}
}

func (m *machine) isBegun(goal string) bool {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	for _, one := range m.steps.all {
		if one.goal == goal {
			return !one.begun.IsZero()
		}
	}
	return false
}

// end lets a step end.
func (m *machine) end(goal string) {
	m.Helper()
	if err := os.WriteFile(filepath.Join(m.folder, goal), []byte("\n"), 0o600); err != nil {
		m.Fatal(err)
	}
}

// allEnd waits for the end of the run.
func (m *machine) allEnd() {
	m.Helper()
	if err := <-m.ended; err != nil {
		m.Error(err)
	}
}
