package httpapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/sluice-queue/sluice"
)

// streamLine is a line of the answer of a stream: about one line of the request, or at the end about all.
type streamLine struct {
	// Line is the number of the line of the request, from 1. Of the last line of the answer, it is how many lines
	// have their answer.
	Line int `json:"line"`
	Enqueued
	// Done is the last line of an answer that is whole.
	Done *Tally `json:"done,omitempty"`
}

const (
	// streamBatch is the most lines that a stream stores together, and streamBytes about the most bytes.
	streamBatch = 600
	streamBytes = 4 << 20
	// streamBuffer is how much of a stream is read at once.
	streamBuffer = 256 << 10
)

// stream stores the lines of a request. Goroutines read lines, and store two batches of those before them.
type stream struct {
	c       *call
	r       *http.Request
	lines   *lineReader
	out     *bufio.Writer
	encoder *json.Encoder
	refused bool // answers only refused lines

	answer int // the lines up to this one have their answer
	tally  Tally
}

// enqueueStream stores a stream, and answers while it reads.
func (c *call) enqueueStream(w http.ResponseWriter, r *http.Request) error {
	answers := r.URL.Query().Get("answers")
	if answers != "" && answers != "all" && answers != "refused" {
		return &sluice.InvalidError{Field: "answers", Rule: fmt.Sprintf("%.20q must be all or refused", answers)}
	}
	_ = c.deadlines.EnableFullDuplex() // HTTP/2 always is
	w.Header().Set("Content-Type", typeStream)
	closeAfter(w, r) // the rest of a cut stream is not the next request
	w.WriteHeader(http.StatusOK)
	s := &stream{
		c: c, r: r, refused: answers == "refused",
		lines: newLineReader(c, r.Body),
		out:   bufio.NewWriter(patientWriter{w, c.deadlines, c.api.options.Bounds.Idle}),
	}
	s.encoder = json.NewEncoder(s.out)
	s.encoder.SetEscapeHTML(false)
	if err := s.run(); err != nil {
		p := c.problem(err)
		_ = s.encoder.Encode(streamLine{Line: s.answer, Enqueued: Enqueued{Error: p}}) // the client may be gone
	} else {
		_ = s.encoder.Encode(streamLine{Line: s.answer, Done: &s.tally})
	}
	_ = s.out.Flush()
	return nil
}

// batchOfLines are lines that are stored together.
type batchOfLines struct {
	read     lines
	results  []Enqueued
	panicked any
	done     chan struct{} // closed when the fields above are complete
}

// ended is closed when the lines are stored. Without lines, it never is.
func (b *batchOfLines) ended() <-chan struct{} {
	if b == nil {
		return nil
	}
	return b.done
}

// run stores all lines. It stores what was read whenever at most one batch before is not stored yet, and answers in order.
func (s *stream) run() error {
	go s.lines.run()
	defer s.lines.stop()
	var before *batchOfLines // stored or being stored, not answered
	defer func() {
		if before != nil {
			<-before.done
		}
	}()
	for {
		draining := false
		select {
		case <-before.ended():
			if err := s.write(before); err != nil {
				return err
			}
			before = nil
			continue
		case <-s.lines.ready:
		case <-s.c.api.draining:
			draining = true
		}
		read := s.lines.take()
		if read.panicked != nil {
			panic(read.panicked)
		}
		if err := s.r.Context().Err(); err != nil && len(read.jobs) > 0 {
			return err
		}
		if err := s.goOn(read); err != nil {
			return errors.Join(s.write(before), err)
		}
		last := before
		before = s.begin(read, last)
		if err := s.write(last); err != nil {
			return err
		}
		if read.err == nil && !draining {
			continue
		}
		if err := s.write(before); err != nil || errors.Is(read.err, io.EOF) {
			return err
		}
		if read.err != nil {
			return read.err
		}
		return problemOf(http.StatusServiceUnavailable, "draining", "the server ends", "go on after the line that this answer names").after(time.Second)
	}
}

// goOn returns why the caller may not store these lines.
func (s *stream) goOn(read lines) error {
	if len(read.jobs) == 0 {
		return nil
	}
	return s.c.still()
}

// begin begins to store lines. If their order matters, it waits until the batch before is stored.
func (s *stream) begin(read lines, before *batchOfLines) *batchOfLines {
	b := &batchOfLines{read: read, done: make(chan struct{})}
	if before != nil && (read.ordered || before.read.ordered) {
		<-before.done
	}
	go func() {
		defer close(b.done)
		b.panicked = guard(func() { b.results = s.c.enqueueAll(s.r.Context(), read.jobs, s.c.afterCheck(0)) })
	}()
	return b
}

// write waits until lines are stored, and answers them.
func (s *stream) write(b *batchOfLines) error {
	if b == nil {
		return nil
	}
	<-b.done
	if b.panicked != nil {
		panic(b.panicked)
	}
	for i, result := range b.results {
		s.tally.count(result)
		if s.refused && result.Error == nil {
			continue
		}
		if err := s.encoder.Encode(streamLine{Line: b.read.numbers[i], Enqueued: result}); err != nil {
			return err
		}
	}
	s.answer = b.read.last
	return s.out.Flush()
}

// guard runs a function, and returns the value of its panic, so that the goroutine of the request can panic with it. A
// panic of another goroutine would end the program.
func guard(do func()) (panicked any) {
	defer func() {
		if value := recover(); value != nil {
			panicked = fmt.Errorf("%v\n%s", value, debug.Stack())
		}
	}()
	do()
	return nil
}

// patientWriter writes as long as the client reads within the idle time.
type patientWriter struct {
	http.ResponseWriter
	deadlines *http.ResponseController
	idle      time.Duration
}

func (p patientWriter) Write(b []byte) (int, error) {
	_ = p.deadlines.SetWriteDeadline(time.Now().Add(p.idle)) // a recorder of tests has none
	n, err := p.ResponseWriter.Write(b)
	if err == nil {
		err = p.deadlines.Flush()
	}
	return n, err
}
