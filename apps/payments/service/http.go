package service

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/payments/domain"
)

// maxBody bounds what one request submits, maxLine a line of an import, in bytes.
const (
	maxBody = 64 << 20
	maxLine = 1 << 20
)

// Handler is the REST endpoints:
//
//	POST /payments          one payment, or an array of them, as JSON
//	POST /payments/import   payments as NDJSON, one per line
//	GET  /payments/{id}     the payment's status, and its job's state
//	GET  /health             whether the database and Temporal can be reached
//	GET  /healthz, /readyz   whether the process lives, and whether it is ready and why not
//	GET  /metrics            for Prometheus
//
// and the same for each other domain.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, d := range s.Domains {
		mux.HandleFunc("POST "+d.Path, func(w http.ResponseWriter, r *http.Request) { s.submit(w, r, d, readJSON) })
		mux.HandleFunc("POST "+d.Path+"/import", func(w http.ResponseWriter, r *http.Request) { s.submit(w, r, d, readLines) })
		mux.HandleFunc("GET "+d.Path+"/{id}", func(w http.ResponseWriter, r *http.Request) { s.status(w, r, d) })
	}
	mux.HandleFunc("GET /health", s.health)
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		mux.Handle("GET "+path, s.monitor)
	}
	return mux
}

// submit runs phase A for what a request holds, and answers with what became of it. Phase A takes as long as its
// transactions; what is scheduled then is durable.
func (s *Service) submit(w http.ResponseWriter, r *http.Request, d domain.Domain, read func(io.Reader, func([]json.RawMessage) error) error) {
	var all domain.Result
	lines := 0
	err := read(http.MaxBytesReader(w, r.Body, maxBody), func(items []json.RawMessage) error {
		result, err := d.Submit(r.Context(), s.Temporal, items)
		all.Add(result, lines)
		lines += len(items)
		return err
	})
	if err != nil {
		s.fail(w, err, all)
		return
	}
	code := http.StatusOK
	if all.Scheduled+all.Duplicates == 0 {
		code = http.StatusUnprocessableEntity
	}
	answer(w, code, all)
}

// readJSON reads one item or an array of them.
func readJSON(body io.Reader, submit func([]json.RawMessage) error) error {
	text, err := io.ReadAll(body)
	if err != nil {
		return unreadable(err)
	}
	items := []json.RawMessage{text}
	if text = bytes.TrimSpace(text); bytes.HasPrefix(text, []byte("[")) {
		items = nil
		if err := json.Unmarshal(text, &items); err != nil {
			return unreadable(err)
		}
	}
	for len(items) > 0 {
		n := min(len(items), domain.MaxSubmission)
		if err := submit(quoted(items[:n])); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// readLines reads an item per line, and hands some of them over at a time, however many there are.
func readLines(body io.Reader, submit func([]json.RawMessage) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	var items []json.RawMessage
	for lines.Scan() {
		items = append(items, bytes.Clone(lines.Bytes()))
		if len(items) == domain.MaxSubmission {
			if err := submit(quoted(items)); err != nil {
				return err
			}
			items = nil
		}
	}
	if err := lines.Err(); err != nil {
		return unreadable(err)
	}
	if len(items) == 0 {
		return nil
	}
	return submit(quoted(items))
}

// quoted makes strings of items that are no JSON, so that phase A refuses these alone.
func quoted(items []json.RawMessage) []json.RawMessage {
	for i, item := range items {
		if !json.Valid(item) {
			items[i], _ = json.Marshal(string(item)) // a string can be written
		}
	}
	return items
}

func unreadable(err error) error {
	return fmt.Errorf("%w: read the request: %w", sluice.ErrInvalid, err)
}

// status tells how far an item has come.
func (s *Service) status(w http.ResponseWriter, r *http.Request, d domain.Domain) {
	id := r.PathValue("id")
	standing, err := d.Status(r.Context(), id)
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	page, err := s.Books.Client.Jobs(r.Context(), sluice.JobFilter{Queue: d.Queue, Key: id, Limit: 1})
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	reply := map[string]any{"id": id, "status": standing.Status}
	if standing.Failure != "" {
		reply["failure"] = standing.Failure
	}
	if len(page.Jobs) > 0 {
		reply["job"] = page.Jobs[0]
	}
	answer(w, http.StatusOK, reply)
}

// health tells whether the database and Temporal can be reached.
func (s *Service) health(w http.ResponseWriter, r *http.Request) {
	_, err := s.Books.Store.Now(r.Context())
	if err == nil {
		_, err = s.Temporal.CheckHealth(r.Context(), nil)
	}
	if err != nil {
		s.fail(w, err, nil)
		return
	}
	answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// fail tells what went wrong, and what was done before.
func (s *Service) fail(w http.ResponseWriter, err error, done any) {
	code := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, context.Canceled):
		return // the client has gone
	case errors.Is(err, sluice.ErrInvalid):
		code = http.StatusBadRequest
	case errors.Is(err, sluice.ErrNotFound):
		code = http.StatusNotFound
	default:
		s.options.Logger.Error("request failed", "error", err)
	}
	answer(w, code, map[string]any{"error": err.Error(), "done": done})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone cannot be told
}
