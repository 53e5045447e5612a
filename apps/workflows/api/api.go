// Package api is the REST interface of the application.
package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/explain"
)

// maxBody bounds a request, in bytes; listed is how many executions are listed.
const (
	maxBody = 1 << 20
	listed  = 100
)

// API answers requests.
type API struct {
	// Database is where everything lies.
	Database *records.Database
	// Logger gets what callers cannot mend.
	Logger *slog.Logger
	// Monitor answers /healthz, /readyz and /metrics. Default: nothing is answered there.
	Monitor http.Handler
}

// handler answers one request: with a status and a body, or with an error.
type handler func(r *http.Request) (status int, body any, err error)

// Handler serves:
//
//	PUT    /workspaces/{workspace}                                          {"name", "plan", "max_attempts"}
//	PUT    /workspaces/{workspace}/definitions/{definition}                 {"name", "max_attempts"}
//	PUT    /workspaces/{workspace}/definitions/{definition}/versions/{version}   the graph
//	DELETE each of the three
//	POST   /workspaces/{workspace}/executions                               {"definition", "version", "variables", …}
//	GET    /workspaces/{workspace}/executions                               the newest
//	GET    /workspaces/{workspace}/executions/{execution}                   with its steps and its job
//	GET    /workspaces/{workspace}/executions/{execution}/why               why it is not running
//	GET    /healthz, /readyz, /metrics                                      of the Monitor
//
// There is no authentication: put it behind something that has one.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	const workspace, definition, version = "/workspaces/{workspace}", "/definitions/{definition}", "/versions/{version}"
	for pattern, handle := range map[string]handler{
		"PUT " + workspace:                           a.saveWorkspace,
		"PUT " + workspace + definition:              a.saveDefinition,
		"PUT " + workspace + definition + version:    a.saveVersion,
		"DELETE " + workspace:                        a.deleteWorkspace,
		"DELETE " + workspace + definition:           a.deleteDefinition,
		"DELETE " + workspace + definition + version: a.deleteVersion,
		"POST " + workspace + "/executions":          a.enqueue,
		"GET " + workspace + "/executions":           a.executions,
		"GET " + workspace + "/executions/{id}":      a.execution,
		"GET " + workspace + "/executions/{id}/why":  a.why,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			a.answer(w, r, handle)
		})
	}
	if a.Monitor != nil {
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
			mux.Handle("GET "+path, a.Monitor)
		}
	}
	return mux
}

func (a *API) answer(w http.ResponseWriter, r *http.Request, handle handler) {
	status, body, err := handle(r)
	if err != nil {
		status = statusOf(err)
		body = map[string]string{"error": err.Error()}
	}
	if status == http.StatusInternalServerError {
		a.Logger.Error("request failed", "method", r.Method, "path", r.URL.Path, "error", err)
		body = map[string]string{"error": "internal error"}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body) // the caller is gone
	}
}

func statusOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, sluice.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, sluice.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, records.ErrConflict):
		return http.StatusConflict
	case errors.Is(err, sluice.ErrUnavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// read reads a JSON body.
func read(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return &sluice.InvalidError{Field: "body", Rule: err.Error()}
	}
	return nil
}

// by says who acts, for Sluice's audit.
const by = "workflows api"

func (a *API) saveWorkspace(r *http.Request) (int, any, error) {
	var w records.Workspace
	if err := read(r, &w); err != nil {
		return 0, nil, err
	}
	w.ID = r.PathValue("workspace")
	return http.StatusOK, w, a.Database.SaveWorkspace(r.Context(), w, by)
}

func (a *API) saveDefinition(r *http.Request) (int, any, error) {
	var d records.Definition
	if err := read(r, &d); err != nil {
		return 0, nil, err
	}
	d.ID = r.PathValue("definition")
	return http.StatusOK, d, a.Database.SaveDefinition(r.Context(), r.PathValue("workspace"), d)
}

func (a *API) saveVersion(r *http.Request) (int, any, error) {
	version, err := versionOf(r)
	if err != nil {
		return 0, nil, err
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, err
	}
	err = a.Database.SaveVersion(r.Context(), r.PathValue("workspace"), r.PathValue("definition"), version, text)
	return http.StatusOK, map[string]int{"version": version}, err
}

func versionOf(r *http.Request) (int, error) {
	version, err := strconv.Atoi(r.PathValue("version"))
	if err != nil {
		return 0, &sluice.InvalidError{Field: "version", Rule: fmt.Sprintf("%.40q is not a whole number", r.PathValue("version"))}
	}
	return version, nil
}

func (a *API) deleteWorkspace(r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, a.Database.DeleteWorkspace(r.Context(), r.PathValue("workspace"))
}

func (a *API) deleteDefinition(r *http.Request) (int, any, error) {
	return http.StatusNoContent, nil, a.Database.DeleteDefinition(r.Context(), r.PathValue("workspace"), r.PathValue("definition"))
}

func (a *API) deleteVersion(r *http.Request) (int, any, error) {
	version, err := versionOf(r)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusNoContent, nil, a.Database.DeleteVersion(r.Context(), r.PathValue("workspace"), r.PathValue("definition"), version)
}

func (a *API) enqueue(r *http.Request) (int, any, error) {
	var e records.NewExecution
	if err := read(r, &e); err != nil {
		return 0, nil, err
	}
	id, fresh, err := a.Database.Enqueue(r.Context(), r.PathValue("workspace"), e)
	status := http.StatusAccepted
	if !fresh {
		status = http.StatusOK // it was there before
	}
	return status, map[string]sluice.ID{"id": id}, err
}

func (a *API) executions(r *http.Request) (int, any, error) {
	found, err := a.Database.Executions(r.Context(), r.PathValue("workspace"), listed)
	return http.StatusOK, found, err
}

// looked is an execution with what its job says of it.
type looked struct {
	records.Execution
	Job *job `json:"job,omitempty"`
}

// job is what of a job callers may see: not the jobs of others that it waits for.
type job struct {
	State    sluice.State `json:"state"`
	Attempts int          `json:"attempts"`
	Ref      string       `json:"ref,omitempty"`
	Error    string       `json:"error,omitempty"`
}

func (a *API) execution(r *http.Request) (int, any, error) {
	e, err := a.find(r)
	if err != nil {
		return 0, nil, err
	}
	out := looked{Execution: e}
	j, err := a.Database.Client.Job(r.Context(), e.ID)
	switch {
	case errors.Is(err, sluice.ErrNotFound): // it ended so long ago that it is not kept any more
		return http.StatusOK, out, nil
	case err != nil:
		return 0, nil, err
	}
	out.Job = &job{j.State, j.Attempts, j.Ref, j.Error}
	return http.StatusOK, out, nil
}

func (a *API) why(r *http.Request) (int, any, error) {
	e, err := a.find(r)
	if err != nil {
		return 0, nil, err
	}
	why, err := explain.Job(r.Context(), a.Database.Store, e.ID)
	return http.StatusOK, why, err
}

func (a *API) find(r *http.Request) (records.Execution, error) {
	id, err := sluice.ParseID(r.PathValue("id"))
	if err != nil {
		return records.Execution{}, err
	}
	return a.Database.Execution(r.Context(), r.PathValue("workspace"), id)
}
