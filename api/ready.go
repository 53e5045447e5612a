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

// Check examines one condition for the work of a process.
type Check struct {
	// Name is the subject, such as "store" or "upkeep".
	Name string
	// Look examines the subject and returns a description, or an error with the fault. Look is abandoned when
	// ctx ends.
	Examine func(ctx context.Context) (what string, err error)
	// Told makes the check informative: the process is ready even if the check fails. A fault that every
	// process sees, such as an unreachable engine, then does not take all of them out of service at once.
	Informative bool
	// Every is how long a result is reused, however often it is requested. Default 1 s.
	Every time.Duration
	// Within is the deadline of Look. Default 2 s.
	Within time.Duration
}

// Found is the result of a check.
type Found struct {
	Check string `json:"check"`
	Well  bool   `json:"well"`
	// Needed is true if the process is not ready while this check fails.
	Needed bool   `json:"needed"`
	What   string `json:"what"`
}

// Report is the answer of /readyz.
type Report struct {
	Ready  bool    `json:"ready"`
	Checks []Found `json:"checks"`
}

// Readiness decides whether a process is ready, and lists the reasons if not. Many goroutines may use it at
// once.
type Readiness struct {
	mu       sync.Mutex
	draining bool
	checks   []*standing
}

// standing is a check and its last result.
type standing struct {
	Check
	mu    sync.Mutex
	found Found
	until time.Time
	// looking is closed when the current look has ended; nil: no look is under way. by is when callers stop
	// waiting for it.
	looking chan struct{}
	by      time.Time
}

// NewReadiness makes a readiness of checks.
func NewReadiness(checks ...Check) *Readiness {
	r := &Readiness{}
	r.Watch(checks...)
	return r
}

// Watch replaces the checks from now on.
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

// Drain makes the process unready at once and for good: it is ending and must get no new work.
func (r *Readiness) Drain() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.draining = true
}

// Report runs the checks in parallel, except those whose last result still counts. The results do not depend on
// the caller: if one leaves early, the others still get them.
func (r *Readiness) Report() Report {
	r.mu.Lock()
	checks, draining := r.checks, r.draining
	r.mu.Unlock()
	report := Report{Ready: !draining, Checks: make([]Found, len(checks))}
	if draining { // the state of the store no longer matters
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

// look returns the result that still counts, or runs the check. Callers wait for the check, but never beyond
// its deadline. A check that ignores its context is abandoned, and no second one starts beside it.
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
		return s.logged("", fmt.Errorf("no answer within %s", s.Within))
	}
}

// slack is the extra time for a check that heeds its context to return its error.
const slack = 500 * time.Millisecond

func (s *standing) lookNow(ended chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), s.Within)
	defer cancel()
	found := s.logged(s.lookSafely(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.until, s.looking = found, time.Now().Add(s.Every), nil
	close(ended)
}

// lookSafely runs the check and returns a panic as an error.
func (s *standing) lookSafely(ctx context.Context) (what string, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = fmt.Errorf("the check panicked: %v", panicked)
		}
	}()
	if err := sluice.CheckGiven("examine", s.Examine); err != nil {
		return "", err
	}
	return s.Examine(ctx)
}

func (s *standing) logged(what string, err error) Found {
	if err != nil {
		what = err.Error()
	}
	return Found{Check: s.Name, Well: err == nil, Needed: !s.Informative, What: oneLine(what)}
}

// maxWhat is the most characters of a result; some errors contain a statement.
const maxWhat = 400

// oneLine writes a text on one line, and cuts a long one.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if letters := []rune(text); len(letters) > maxWhat {
		return string(letters[:maxWhat]) + "…"
	}
	return text
}

// ServeHTTP writes the report with status 200 if the process is ready, 503 if not. The format is JSON if the
// request accepts it, else text.
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

// String returns the report for people: a line that says whether the process is ready, and a line per check.
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
