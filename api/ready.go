package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// Check looks at one thing that work depends on.
type Check struct {
	// Name is what it looks at: «store», «upkeep».
	Name string
	// Look says how that is, and as an error why it is not well. It is given up when ctx ends.
	Look func(ctx context.Context) (what string, err error)
	// Told: what it finds is told, and the process is ready whatever it finds. So a fault that every process sees, such
	// as an engine that is away, does not take all of them out of service at once.
	Told bool
	// Every is how long what it found counts, however often it is asked for. Default 1 s.
	Every time.Duration
	// Within is how long it may take. Default 2 s.
	Within time.Duration
}

// Found is what a check found.
type Found struct {
	Check string `json:"check"`
	Well  bool   `json:"well"`
	// Needed: the process is not ready while this is not well.
	Needed bool   `json:"needed"`
	What   string `json:"what"`
}

// Report is what /readyz tells.
type Report struct {
	Ready  bool    `json:"ready"`
	Checks []Found `json:"checks"`
}

// Readiness tells whether a process is ready, and why not. It may be used by many goroutines.
type Readiness struct {
	mu       sync.Mutex
	draining bool
	checks   []*standing
}

// standing is a check and what it found last.
type standing struct {
	Check
	mu    sync.Mutex
	found Found
	until time.Time
	// looking is closed when the look under way has ended; nil: none is. By then whoever asks does not wait any longer.
	looking chan struct{}
	by      time.Time
}

// NewReadiness makes a readiness of checks.
func NewReadiness(checks ...Check) *Readiness {
	r := &Readiness{}
	r.Watch(checks...)
	return r
}

// Watch makes other checks count from now on, instead of those so far.
func (r *Readiness) Watch(checks ...Check) {
	stands := make([]*standing, len(checks))
	for i, c := range checks {
		if c.Every <= 0 {
			c.Every = time.Second
		}
		if c.Within <= 0 {
			c.Within = 2 * time.Second
		}
		stands[i] = &standing{Check: c}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checks = stands
}

// Drain makes the process unready for good, at once: it ends, and is to get nothing new.
func (r *Readiness) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
}

// Report says how things are. The checks look side by side, those whose last look still counts not at all. What they
// find does not depend on who asks: a caller that leaves early does not spoil it for others.
func (r *Readiness) Report() Report {
	r.mu.Lock()
	checks, draining := r.checks, r.draining
	r.mu.Unlock()
	report := Report{Ready: !draining, Checks: make([]Found, len(checks))}
	if draining { // what the store says does not matter any more
		report.Checks = []Found{{Check: "process", Needed: true, What: "it is draining: it ends when what it has begun is done"}}
		return report
	}
	var all sync.WaitGroup
	for i, c := range checks {
		all.Go(func() { report.Checks[i] = c.look() })
	}
	all.Wait()
	for _, found := range report.Checks {
		report.Ready = report.Ready && (found.Well || !found.Needed)
	}
	return report
}

// look gives what counts, and looks where nothing does. Whoever asks while it looks waits for what it finds, but never
// longer than it may take: one that does not heed its context is left to itself, and no second one is begun beside it.
func (s *standing) look() Found {
	s.mu.Lock()
	if time.Now().Before(s.until) {
		defer s.mu.Unlock()
		return s.found
	}
	if s.looking == nil {
		s.looking, s.by = make(chan struct{}), time.Now().Add(s.Within+slack)
		go s.lookNow(s.looking)
	}
	looking, late := s.looking, time.NewTimer(time.Until(s.by))
	s.mu.Unlock()
	defer late.Stop()
	select {
	case <-looking:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.found
	case <-late.C:
		return s.told("", fmt.Errorf("no answer within %s", s.Within))
	}
}

// slack is what a look may take longer that heeds its context, to say what it was waiting for.
const slack = 500 * time.Millisecond

func (s *standing) lookNow(ended chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Within)
	defer cancel()
	found := s.told(s.lookSafely(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.until, s.looking = found, time.Now().Add(s.Every), nil
	close(ended)
}

// lookSafely looks in a goroutine of ours: a panic, such as one of a store, is what the check has found.
func (s *standing) lookSafely(ctx context.Context) (what string, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the check panicked: %v", panicked)
		}
	}()
	if err := sluice.CheckGiven("look", s.Look); err != nil {
		return "", err
	}
	return s.Look(ctx)
}

func (s *standing) told(what string, err error) Found {
	if err != nil {
		what = err.Error()
	}
	return Found{Check: s.Name, Well: err == nil, Needed: !s.Told, What: oneLine(what)}
}

// maxWhat bounds what a check tells; some errors carry a statement.
const maxWhat = 400

// oneLine writes a text on one line, and cuts it where it is long.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > maxWhat {
		return string(letters[:maxWhat]) + "…"
	}
	return text
}

// ServeHTTP tells the report: 200 where the process is ready, 503 where it is not. As JSON to whoever asks for that, and
// else as text.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	report := r.Report()
	status := http.StatusOK
	if !report.Ready {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Vary", "Accept")
	if strings.Contains(request.Header.Get("Accept"), "application/json") {
		writeJSON(w, "application/json", status, report)
		return
	}
	writeText(w, status, report.String())
}

// String is the report for people: a line that says whether it is ready, and one for each check.
func (r Report) String() string {
	var text strings.Builder
	text.WriteString("ready\n")
	if !r.Ready {
		text.Reset()
		text.WriteString("not ready\n")
	}
	for _, found := range r.Checks {
		mark := "✔"
		switch {
		case !found.Well && found.Needed:
			mark = "✖"
		case !found.Well:
			mark = "!"
		}
		fmt.Fprintf(&text, "%s %-10s %s\n", mark, found.Check, found.What)
	}
	return text.String()
}
