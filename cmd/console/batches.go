package console

import (
	"context"
	"net/url"
	"time"

	"github.com/sluice-queue/sluice/batch"
)

func batchPages() []page {
	return []page{
		{name: "batches", path: "/batches", title: "Batches", letter: "b", load: loadBatches},
		{name: "batch", path: "/batches/{id}", title: "Batch", load: loadBatch},
	}
}

// batchRow is a batch on a page.
type batchRow struct {
	batch.Batch
	State    string   `json:"state"`
	Progress float64  `json:"progress"`
	ETA      *float64 `json:"eta_seconds"`
}

// Title is the name, or else the beginning of the ID.
func (b batchRow) Title() string {
	if b.Name != "" {
		return b.Name
	}
	return "…" + shortID(b.ID)
}

// Left is how long it will probably take. Empty: that is not known.
func (b batchRow) Left() string {
	if b.ETA == nil {
		return ""
	}
	return spanText(time.Duration(*b.ETA * float64(time.Second)))
}

// Acts are the names of the acts that the state allows.
func (b batchRow) Acts() (names []string) {
	if b.ClosedAt.IsZero() {
		names = append(names, "close-batch")
	}
	switch {
	case b.Unfinished() > 0 && b.Paused == "":
		names = append(names, "pause-batch", "cancel-batch")
	case b.Unfinished() > 0:
		names = append(names, "resume-batch", "cancel-batch")
	case b.ClosedAt.IsZero():
		names = append(names, "cancel-batch")
	}
	if b.Dead > 0 {
		names = append(names, "retry-batch")
	}
	return names
}

// Where is the filter of its jobs.
func (b batchRow) Where() string { return "batch:" + b.ID.String() }

// batchList is the view of /batches.
type batchList struct {
	Batches    []batchRow `json:"batches"`
	Unfinished bool
	Older      string
}

// batchPage is how many batches a page has.
const batchPage = 50

func loadBatches(ctx context.Context, v *visit) (any, error) {
	view := batchList{Unfinished: v.query.Get("unfinished") == "true"}
	query, command := url.Values{"limit": {"50"}}, "sluice batches ls"
	if view.Unfinished {
		query.Set("unfinished", "true")
		command += " --unfinished"
	}
	if before := v.query.Get("before"); before != "" {
		query.Set("before", before)
	}
	v.cli(command)
	if err := v.get(ctx, "/batches", query, &view); err != nil {
		return nil, err
	}
	if n := len(view.Batches); n == batchPage {
		view.Older = v.with("before", view.Batches[n-1].ID.String())
	}
	return view, nil
}

// batchView is the view of /batches/{id}.
type batchView struct {
	Batch    batchRow
	Children []batchRow
}

func loadBatch(ctx context.Context, v *visit) (any, error) {
	var view batchView
	id := v.pathOf("id")
	v.cli("sluice batches show " + quoted(id))
	if err := v.get(ctx, "/batches/"+url.PathEscape(id), nil, &view.Batch); err != nil {
		return nil, err
	}
	if view.Batch.Batches > 0 {
		var children batchList
		if err := v.get(ctx, "/batches", url.Values{"parent": {id}, "limit": {"100"}}, &children); err != nil {
			return nil, err
		}
		view.Children = children.Batches
	}
	return view, nil
}

// Callbacks are the jobs that it enqueues, by the event.
func (v batchView) Callbacks() (all []relation) {
	for _, one := range []struct {
		name string
		of   *batch.Callback
		at   time.Time
	}{{"When all have ended", v.Batch.OnComplete, v.Batch.CompletedAt}, {"When all have completed", v.Batch.OnSuccess, v.Batch.SucceededAt}, {"When the first is dead", v.Batch.OnDeath, v.Batch.DiedAt}} {
		if one.of == nil {
			continue
		}
		text := "a job of " + one.of.Queue
		if !one.at.IsZero() {
			text += ", enqueued"
		}
		all = append(all, relation{Name: one.name, Text: text})
	}
	return all
}

func batchActs() []act {
	on := func(verb, label, undo, sentence string) act {
		return act{
			name: verb + "-batch", label: label, route: verb + "-batch", undo: undo, sentence: sentence, then: "/operations/{id}",
			command: "sluice batches " + verb + " {id} --detach --reason={reason}",
		}
	}
	closing := on("close", "Close", "", "No more jobs are added to the batch, so that it can complete.")
	closing.then, closing.command = "", "sluice batches close {id} --reason={reason}"
	pause := on("pause", "Pause", "", "The waiting jobs of the batch, and those that are added later, are held. Jobs that run go on.")
	pause.needsReason = true
	cancel := on("cancel", "Cancel", "", "The batch is closed, and its unfinished jobs are cancelled.")
	cancel.danger = true
	retry := on("retry", "Requeue its dead jobs", "", "The dead jobs of the batch begin a new life: first the canary, then the others.")
	retry.needsReason, retry.command = true, "sluice batches retry {id} --rate={rate} --canary={canary} --stop-if-failed={stop_if_failed}% --detach --reason={reason}"
	retry.fields = []field{
		{name: "rate", label: "Pace", hint: "such as 20/s; empty: as fast as upkeep can", kind: "text"},
		{name: "canary", label: "Canary", hint: "how many to requeue first", kind: "number", value: "10"},
		{name: "stop_if_failed", label: "Stop if more fail again (%)", hint: "of the jobs that were requeued", kind: "number", value: "10"},
	}
	retry.body = func(values url.Values) (map[string]any, error) {
		body, err := operationBody("requeue", values)
		delete(body, "kind")
		delete(body, "where")
		return body, err
	}
	return []act{closing, pause, on("resume", "Resume", "", "The pause ends, and the held jobs of the batch are released."), cancel, retry}
}
