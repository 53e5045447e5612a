package httpapi

import (
	"bufio"
	"bytes"
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
	// streamBatch is the most lines that a stream stores together, and streamBytes the most bytes.
	streamBatch = 1000
	streamBytes = 4 << 20
	// streamBuffer is how much of a stream is read at once.
	streamBuffer = 256 << 10
)

// stream stores the lines of a request.
type stream struct {
	c       *call
	r       *http.Request
	lines   *bufio.Reader
	out     *bufio.Writer
	encoder *json.Encoder
	refused bool // answers only refused lines

	batch   []json.RawMessage
	numbers []int
	bytes   int
	number  int // of the last line
	answer  int // the lines up to this one have their answer
	tally   Tally
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
	idle := c.api.options.Bounds.Idle
	s := &stream{
		c: c, r: r, refused: answers == "refused",
		lines: bufio.NewReaderSize(patient{r.Body, c.deadlines.SetReadDeadline, idle}, streamBuffer),
		out:   bufio.NewWriter(patientWriter{w, c.deadlines, idle}),
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

// run stores all lines. It stores what it has whenever the client has sent no more yet.
func (s *stream) run() error {
	for {
		line, err := s.readLine()
		if len(line) > 0 {
			s.batch, s.numbers, s.bytes = append(s.batch, line), append(s.numbers, s.number), s.bytes+len(line)
		}
		full := len(s.batch) >= streamBatch || s.bytes >= streamBytes
		if full || err != nil || s.lines.Buffered() == 0 {
			if err := s.store(); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		select {
		case <-s.c.api.draining:
			if err := s.store(); err != nil {
				return err
			}
			return problemOf(http.StatusServiceUnavailable, "draining", "the server ends", "go on after the line that this answer names").after(time.Second)
		default:
		}
	}
}

// readLine reads a line, without its blanks. At the end the error is io.EOF.
func (s *stream) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := s.lines.ReadSlice('\n')
		if len(line)+len(part) > int(s.c.api.options.Bounds.Body) {
			return nil, problemOf(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("line %d is longer than %d bytes", s.number+1, s.c.api.options.Bounds.Body), "send shorter lines")
		}
		line = append(line, part...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 {
			s.number++
		}
		if err != nil && !errors.Is(err, io.EOF) {
			err = problemOf(http.StatusRequestTimeout, "too_slow", "the stream did not go on", "go on after the line that this answer names")
			return nil, err // a line that may be cut is not stored
		}
		return bytes.TrimSpace(line), err
	}
}

// store stores the batch, and answers its lines.
func (s *stream) store() error {
	if len(s.batch) == 0 {
		s.answer = s.number
		return s.out.Flush()
	}
	if err := s.r.Context().Err(); err != nil {
		return err
	}
	for i, result := range s.c.enqueueItems(s.r.Context(), s.batch) {
		s.tally.count(result)
		if s.refused && result.Error == nil {
			continue
		}
		if err := s.encoder.Encode(streamLine{Line: s.numbers[i], Enqueued: result}); err != nil {
			return err
		}
	}
	s.batch, s.numbers, s.bytes, s.answer = s.batch[:0], s.numbers[:0], 0, s.number
	return s.out.Flush()
}

// patient reads as long as something comes within the idle time.
type patient struct {
	reader   io.Reader
	deadline func(time.Time) error
	idle     time.Duration
}

func (p patient) Read(b []byte) (int, error) {
	_ = p.deadline(time.Now().Add(p.idle)) // a recorder of tests has none
	return p.reader.Read(b)
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
