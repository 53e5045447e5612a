package httpapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
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
	streamBatch = 1000
	streamBytes = 4 << 20
	// streamBuffer is how much of a stream is read at once.
	streamBuffer = 256 << 10
)

// stream stores the lines of a request. One goroutine reads lines while another stores those before them.
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
	go s.lines.run()
	err := s.run()
	s.lines.stop()
	if err != nil {
		p := c.problem(err)
		_ = s.encoder.Encode(streamLine{Line: s.answer, Enqueued: Enqueued{Error: p}}) // the client may be gone
	} else {
		_ = s.encoder.Encode(streamLine{Line: s.answer, Done: &s.tally})
	}
	_ = s.out.Flush()
	return nil
}

// run stores all lines. It stores what was read whenever the store is free.
func (s *stream) run() error {
	for {
		draining := false
		select {
		case <-s.lines.ready:
		case <-s.c.api.draining:
			draining = true
		}
		read := s.lines.take()
		if err := s.store(read); err != nil {
			return err
		}
		switch {
		case errors.Is(read.err, io.EOF):
			return nil
		case read.err != nil:
			return read.err
		case draining:
			return problemOf(http.StatusServiceUnavailable, "draining", "the server ends", "go on after the line that this answer names").after(time.Second)
		}
	}
}

// store stores lines, and answers them.
func (s *stream) store(read lines) error {
	if len(read.jobs) > 0 {
		if err := s.r.Context().Err(); err != nil {
			return err
		}
	}
	for i, result := range s.c.enqueueAll(s.r.Context(), read.jobs) {
		s.tally.count(result)
		if s.refused && result.Error == nil {
			continue
		}
		if err := s.encoder.Encode(streamLine{Line: read.numbers[i], Enqueued: result}); err != nil {
			return err
		}
	}
	s.answer = read.last
	return s.out.Flush()
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
