package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"text/tabwriter"
	"time"
)

// quiet is the time without output after which a line lists the running steps.
const quiet = 20 * time.Second

// A step begins beside others only when enoughIdle of the processors had nothing to do for a time of
// look. On a busy machine steps beside each other gain nothing, and miss each other's deadlines.
const (
	enoughIdle = 0.15
	look       = 5 * time.Second
)

// steps runs goals of the Makefile, side by side while the machine has room. Each line of a goal's
// output begins with the goal's name.
type steps struct {
	make   string
	atOnce int // at most
	out    io.Writer
	idle   func() float64   // the idle share of the processors since the last call
	looks  <-chan time.Time // when to ask

	mu      sync.Mutex
	printed time.Time
	all     []*step
}

// step is a goal and its cost.
type step struct {
	goal         string
	begun, ended time.Time
	cpu          time.Duration // of its processes, without servers that it leaves running
	err          error
	said         failures
}

// run runs the goals in order, and prints the cost of each. After a failure, run starts no more
// goals.
func (s *steps) run(goals []string) error {
	s.plan(goals)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go s.beat(ctx)
	begun := time.Now()
	ended := make(chan struct{})
	for running, room := 0, false; ; {
		next := s.next()
		switch {
		case next != nil && (running == 0 || room && running < s.atOnce):
			running++
			s.begin(next, ended)
		case running == 0:
			return s.report(time.Since(begun))
		}
		select {
		case <-ended:
			running, room = running-1, false
		case <-s.looks:
			room = s.idle() >= enoughIdle
		}
	}
}

func (s *steps) plan(goals []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, goal := range goals {
		s.all = append(s.all, &step{goal: goal})
	}
}

// next returns the next step to run. Nil: none.
func (s *steps) next() *step {
	s.mu.Lock()
	defer s.mu.Unlock()
	var next *step
	for _, one := range s.all {
		if one.err != nil {
			return nil
		}
		if next == nil && one.begun.IsZero() {
			next = one
		}
	}
	return next
}

// begin runs a step beside the caller.
func (s *steps) begin(one *step, ended chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.begun = time.Now()
	go func() {
		s.do(one)
		ended <- struct{}{}
	}()
}

// do runs a step.
func (s *steps) do(one *step) {
	cmd := exec.Command(s.make, "--no-print-directory", one.goal)
	lines, end := io.Pipe()
	cmd.Stdout, cmd.Stderr = end, end
	cmd.WaitDelay = 10 * time.Second // for a process that a test left behind and that keeps the output open
	told := make(chan struct{})
	go func() {
		defer close(told)
		s.tell(one, lines)
	}()
	err := cmd.Run()
	_ = end.Close()
	<-told
	s.mu.Lock()
	defer s.mu.Unlock()
	one.ended, one.err = time.Now(), err
	if cmd.ProcessState != nil {
		one.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	how := "done"
	if err != nil {
		how = "FAILED: " + err.Error()
	}
	s.print("%s: %s, %s, CPU %s", one.goal, how, seconds(one.ended.Sub(one.begun)), seconds(one.cpu))
}

// tell prints the output of a step.
func (s *steps) tell(one *step, from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" || err == nil {
			s.mu.Lock()
			one.said.hear(line)
			s.print("%s | %s", one.goal, line)
			s.mu.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// print prints a line. The caller holds mu.
func (s *steps) print(format string, args ...any) {
	s.printed = time.Now()
	fmt.Fprintf(s.out, format+"\n", args...)
}

// beat lists the running steps whenever nothing was printed for a while.
func (s *steps) beat(ctx context.Context) {
	tick := time.NewTicker(quiet / 4)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		if time.Since(s.printed) >= quiet {
			var running []string
			for _, one := range s.all {
				if !one.begun.IsZero() && one.ended.IsZero() {
					running = append(running, fmt.Sprintf("%s (%s)", one.goal, seconds(time.Since(one.begun))))
				}
			}
			s.print("running: %s", strings.Join(running, ", "))
		}
		s.mu.Unlock()
	}
}

// report prints the cost of each step, and names the failed ones.
func (s *steps) report(took time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	columns := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	var table io.Writer = columns
	fmt.Fprintln(table, "step\ttook\tCPU\t\t")
	var cpu time.Duration
	var failed []string
	for _, one := range s.all {
		result := "ok"
		switch {
		case one.begun.IsZero():
			fmt.Fprintf(table, "%s\t\t\tnot run\t\n", one.goal)
			continue
		case one.err != nil:
			result = "FAILED"
			failed = append(failed, one.goal)
		}
		cpu += one.cpu
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t\n", one.goal, seconds(one.ended.Sub(one.begun)), seconds(one.cpu), result)
	}
	fmt.Fprintf(table, "all\t%s\t%s\t\t\n", seconds(took), seconds(cpu))
	if err := columns.Flush(); err != nil {
		return err
	}
	s.repeatFailures()
	if len(failed) > 0 {
		return errors.New("these steps failed: " + strings.Join(failed, ", "))
	}
	return nil
}

// repeatFailures repeats the failures of failed steps at the end, for readers who keep only the end
// of the output.
func (s *steps) repeatFailures() {
	for _, one := range s.all {
		if one.err == nil {
			continue
		}
		for _, line := range one.said.lines() {
			s.print("%s ! %s", one.goal, line)
		}
	}
}

// seconds rounds a time for a person.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }

// runSteps runs goals of the Makefile, with the program in MAKE, or with make.
func runSteps(atOnce int, goals []string) (int, error) {
	leaveInterrupts()
	program := cmp.Or(os.Getenv("MAKE"), "make")
	tick := time.NewTicker(look)
	defer tick.Stop()
	s := &steps{make: program, atOnce: atOnce, out: os.Stdout, idle: new(processors).idle, looks: tick.C, printed: time.Now()}
	if err := s.run(goals); err != nil {
		return 1, err
	}
	return 0, nil
}
