package api

import (
	"encoding/json"
	"io"
	"net/http"
)

// Problem is an error in an HTTP answer, by RFC 9457 (application/problem+json).
type Problem struct {
	// Type is a URI for the kind of problem. Default: about:blank, which means that the status says it all.
	Type string `json:"type"`
	// Title is the kind of problem in words. Default: the text of the status.
	Title string `json:"title"`
	// Status is the status code of the answer.
	Status int `json:"status"`
	// Detail describes this problem and its remedy. Detail must never show a secret.
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

// writeJSON answers with a value. Write errors are ignored, because the client may be gone.
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
