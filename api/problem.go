package api

import (
	"encoding/json"
	"io"
	"net/http"
)

// Problem is an error as it is told over HTTP, by RFC 9457 (application/problem+json).
type Problem struct {
	// Type names the kind of problem by a URI. Default: about:blank, which says that the status tells it all.
	Type string `json:"type"`
	// Title says what kind it is. Default: what the status is called.
	Title string `json:"title"`
	// Status is the code of the answer.
	Status int `json:"status"`
	// Detail says what went wrong this time, and what to do. It never shows a secret.
	Detail string `json:"detail,omitempty"`
}

// WriteProblem answers with a problem.
func WriteProblem(w http.ResponseWriter, p Problem) {
	if p.Type == "" {
		p.Type = "about:blank"
	}
	if p.Title == "" {
		p.Title = http.StatusText(p.Status)
	}
	writeJSON(w, "application/problem+json", p.Status, p)
}

// writeJSON answers with a value. Whoever asks may be gone by then; nobody else can be told.
func writeJSON(w http.ResponseWriter, kind string, status int, value any) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value)
}

func writeText(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}
