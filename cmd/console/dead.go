package console

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/stat"
)

func deadPages() []page {
	return []page{
		{name: "dead", path: "/dead", title: "Dead letters", letter: "d", load: loadDead},
		{name: "deadgroup", path: "/dead/{fp}", title: "Dead letters alike", load: loadDeadGroup},
	}
}

// deadList is the view of /dead.
type deadList struct {
	Groups []deadGroup `json:"groups"`
	// Compared counts the dead letters in the groups. More says that older ones are left.
	Compared int  `json:"compared"`
	More     bool `json:"more"`
	// Others are the groups with a note of which no dead letter was compared.
	Others []deadGroup
	// Last is the hour in which a job died last, where there is no dead letter. Zero: none did in lastDays, or that is not known.
	Last time.Time
	// Counted says that somebody counted.
	Counted bool
}

// deadGroup is a group of dead letters whose errors are alike.
type deadGroup struct {
	deadletter.Group
	// NewSince is the version since which the group is new. Empty: it is older, or that is not known.
	NewSince string `json:"-"`
}

// Where is the filter of the jobs of a group.
func (g deadGroup) Where() string {
	where := "state:dead fp:" + g.Fingerprint
	if g.Queue != "" {
		where += " queue:" + g.Queue
	}
	return where
}

// Spark draws how many died in each of the last hours.
func (g deadGroup) Spark() spark {
	s := series{Counted: true} // an hour without deaths is 0, and no gap
	last := 0
	for i, deaths := range g.Hours {
		at := time.Unix(int64(i)*3600, 0)
		s.Slots = append(s.Slots, slot{At: at, Counts: stat.Counts{Dead: int64(deaths)}})
		s.To = at.Add(time.Hour)
		last += deaths
	}
	s.From, s.Every, s.To = time.Unix(0, 0), time.Hour.Seconds(), s.To.Add(seriesDelay)
	return s.spark(fmt.Sprintf("%s of them died in the last %s", draw.Count(last), draw.Plural(len(g.Hours), "hour")), 0, func(one *slot) *float64 { return rounded(float64(one.Counts.Dead)) })
}

// Share is how much of all dead letters are in a group.
func (l deadList) Share(g deadGroup) float64 { return float64(g.Count) / float64(max(l.Compared, 1)) }

// Queues are the queues that have dead letters.
func (l deadList) Queues() map[string]int {
	queues := make(map[string]int)
	for _, g := range l.Groups {
		queues[g.Queue] += g.Count
	}
	return queues
}

func loadDead(ctx context.Context, v *visit) (any, error) {
	var view deadList
	query, command := url.Values{}, "sluice dead groups"
	if queue := v.query.Get("queue"); queue != "" {
		query.Set("queue", queue)
		command += " " + quoted(queue)
	}
	v.cli(command)
	if err := v.get(ctx, "/dead/groups", query, &view); err != nil {
		return view, err
	}
	if len(view.Groups) == 0 {
		v.lastDead(ctx, &view)
	}
	if err := v.markNew(ctx, &view); err != nil || query.Has("queue") {
		return view, err
	}
	notes, err := v.deadNotes(ctx, nil)
	for _, note := range notes {
		if !slices.ContainsFunc(view.Groups, func(g deadGroup) bool { return g.Fingerprint == note.Fingerprint }) {
			view.Others = append(view.Others, groupOf(note))
		}
	}
	return view, err
}

// lastDays is how far back the page looks for the last dead letter, and lastFor how long it shares what it finds.
const (
	lastDays = "30d"
	lastFor  = time.Minute
)

// LastDays is how far back the page looks.
func (l deadList) LastDays() string { return "30 days" }

// lastDead finds the hour in which a job died last, by the statistics.
func (v *visit) lastDead(ctx context.Context, list *deadList) {
	path := "/series"
	if queue := v.query.Get("queue"); queue != "" {
		path = "/queues/" + url.PathEscape(queue) + path
	}
	var read series
	if v.readFor(ctx, lastFor, path, url.Values{"window": {lastDays}}, &read) != nil {
		return // it only helps
	}
	list.Counted = read.Counted
	for _, s := range read.Slots {
		if s.Counts.Dead > 0 {
			list.Last = s.At
		}
	}
}

// markNew says which groups are new.
func (v *visit) markNew(ctx context.Context, list *deadList) error {
	if v.viewer.bounded() || len(list.Groups) == 0 {
		return nil
	}
	holders, err := v.holders(ctx)
	list.markNew(holders)
	return err
}

// groupOf is the group of a note, without what its dead letters say.
func groupOf(note deadletter.Note) deadGroup {
	return deadGroup{Group: deadletter.Group{Fingerprint: note.Fingerprint, Note: &note}}
}

// deadNotes reads notes on groups: that of a fingerprint, or all.
func (v *visit) deadNotes(ctx context.Context, query url.Values) ([]deadletter.Note, error) {
	var list wire.DeadNoteList
	err := v.get(ctx, "/dead/notes", query, &list)
	if statusOf(err) == http.StatusNotFound {
		return nil, nil // the store keeps none
	}
	return list.Notes, err
}

// deadGroupView is the view of /dead/{fp}.
type deadGroupView struct {
	Group deadGroup
	// Known says that the newest dead letters have jobs of the group, so its counts are known.
	Known bool
	Jobs  []jobRow
	Older string
	// Common is what the jobs on the page have in common.
	Common []sharedFact
}

// Any reports whether the group may have jobs.
func (g deadGroupView) Any() bool { return g.Known || len(g.Jobs) > 0 || g.Older != "" }

func loadDeadGroup(ctx context.Context, v *visit) (any, error) {
	view := deadGroupView{Group: deadGroup{Group: deadletter.Group{Fingerprint: v.pathOf("fp")}}}
	if !v.viewer.bounded() {
		var all deadList
		if err := v.get(ctx, "/dead/groups", nil, &all); err != nil {
			return nil, err
		}
		if err := v.markNew(ctx, &all); err != nil {
			return nil, err
		}
		for _, g := range all.Groups {
			if g.Fingerprint == view.Group.Fingerprint {
				view.Group, view.Known = g, true
			}
		}
	}
	v.cli("sluice dead ls --fingerprint=" + quoted(view.Group.Fingerprint))
	query := url.Values{"where": {view.Group.Where()}, "limit": {"50"}}
	if after := v.query.Get("after"); after != "" {
		query.Set("cursor", after)
	}
	var list struct {
		Jobs []jobRow `json:"jobs"`
		Next string   `json:"next"`
	}
	if err := v.get(ctx, "/jobs", query, &list); err != nil {
		return nil, err
	}
	view.Jobs = list.Jobs
	if list.Next != "" {
		view.Older = v.with("after", list.Next)
	}
	if len(view.Jobs) == 0 && !view.Known && list.Next == "" {
		return v.withoutJobs(ctx, view)
	}
	var err error
	view.Common, err = v.common(ctx, view.Jobs)
	return view, err
}

// withoutJobs is the page of a group that has no dead letters now, but a note.
func (v *visit) withoutJobs(ctx context.Context, view deadGroupView) (any, error) {
	if v.viewer.bounded() {
		return nil, noGroup(view)
	}
	notes, err := v.deadNotes(ctx, url.Values{"fingerprint": {view.Group.Fingerprint}})
	if statusOf(err) == http.StatusUnprocessableEntity || err == nil && len(notes) == 0 {
		return nil, noGroup(view)
	}
	if err == nil {
		view.Group = groupOf(notes[0])
	}
	return view, err
}

// noGroup says that nothing is known of a fingerprint.
func noGroup(view deadGroupView) error {
	return &httpapi.Problem{Status: http.StatusNotFound, Title: "Not there", Why: "no dead letter has the fingerprint " + view.Group.Fingerprint, Do: "look at all groups: their jobs may be requeued or deleted"}
}

// noteActs are the acts on the note of a group.
func noteActs() []act {
	resolved := func(is bool) func(url.Values) (map[string]any, error) {
		return func(url.Values) (map[string]any, error) { return map[string]any{"resolved": is}, nil }
	}
	return []act{
		{
			name: "note-group", label: "Edit note", route: "change-dead-note", sentence: "Say what is known of the dead letters {fingerprint}, and who looks after the cause.",
			command: "sluice dead note {fingerprint} --text={text} --owner={owner} --reason={reason}", fill: fillNote,
			fields: []field{{name: "text", label: "Note", kind: "area"}, {name: "owner", label: "Owner", hint: "a person or team; empty: nobody"}},
			body: func(values url.Values) (map[string]any, error) {
				return map[string]any{"text": strings.TrimSpace(values.Get("text")), "owner": strings.TrimSpace(values.Get("owner"))}, nil
			},
		},
		{
			name: "resolve-group", label: "Mark resolved", route: "change-dead-note", undo: "open-group", body: resolved(true), command: "sluice dead note {fingerprint} --resolved --reason={reason}",
			sentence: "Mark the cause of the dead letters {fingerprint} as resolved. If a job dies of it later, the group came back.",
		},
		{
			name: "open-group", label: "Open again", route: "change-dead-note", undo: "resolve-group", body: resolved(false), command: "sluice dead note {fingerprint} --open --reason={reason}",
			sentence: "Mark the cause of the dead letters {fingerprint} as open.",
		},
	}
}

// fillNote fills in the note that the group has.
func fillNote(ctx context.Context, v *visit, values url.Values) error {
	notes, err := v.deadNotes(ctx, url.Values{"fingerprint": {values.Get("fingerprint")}})
	for _, note := range notes {
		values.Set("text", note.Text)
		values.Set("owner", note.Owner)
	}
	return err
}

// groupActs are the acts on a group: as those on all that match, with names for the keys.
func groupActs() []act {
	redrive, remove := allActs()[0], allActs()[len(allActs())-1]
	redrive.name, redrive.label = "retry-group", "Redrive"
	redrive.sentence = "Requeue the dead letters of the group: first the canary, then the others at the pace. It stops by itself if too many fail again."
	remove.name, remove.label = "delete-group", "Delete all"
	remove.sentence = "Delete the dead letters of the group for good."
	return append([]act{redrive, remove}, noteActs()...)
}
