package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
)

// queuePath is the path of a queue.
func queuePath(queue, rest string) string { return "/queues/" + url.PathEscape(queue) + rest }

// queueView is a queue as the API shows it.
type queueView struct {
	Name      string            `json:"name"`
	Version   int64             `json:"version"`
	Settings  map[string]string `json:"settings"`
	Scheduled rawList           `json:"scheduled"`
	ChangedAt time.Time         `json:"changed_at"`
	ChangedBy string            `json:"changed_by"`
	Reason    string            `json:"reason"`
	ByTenant  bool              `json:"by_tenant"`
	Wrong     string            `json:"wrong"`
	Now       time.Time         `json:"now"`
}

// queue reads the view. It ignores settings of a newer server.
func (v queueView) queue() (sluice.Queue, error) {
	out := sluice.Queue{
		Name: v.Name, Version: v.Version, Settings: sluice.DefaultSettings(), ChangedAt: v.ChangedAt, ChangedBy: v.ChangedBy, Reason: v.Reason,
		ByTenant: v.ByTenant, Wrong: v.Wrong, Now: v.Now, Scheduled: v.Scheduled.text(),
	}
	for _, setting := range sluice.AllSettings() {
		text, has := v.Settings[setting.Name]
		if !has {
			continue
		}
		if err := setting.Parse(&out.Settings, text); err != nil {
			return out, err
		}
	}
	stored := out.Stored(v.Now, sluice.Act{}) // the server audits what somebody changes by plain SQL
	stored.Version, stored.ChangedAt, stored.ChangedBy, stored.Reason, stored.Wrong = v.Version, v.ChangedAt, v.ChangedBy, v.Reason, v.Wrong
	return stored, nil
}

// maxQueueNames is the most names in the address of a request, and maxQueuesPage the most queues of an answer.
const maxQueueNames, maxQueuesPage = 100, 200

// Queues lists queues with their settings.
func (s *Store) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	if len(filter.Names) <= maxQueueNames {
		return s.queues(ctx, filter)
	}
	return s.manyQueues(ctx, filter)
}

// queues lists queues, page by page.
func (s *Store) queues(ctx context.Context, filter sluice.QueueFilter) (all []sluice.Queue, err error) {
	q := params{"counts": {"false"}}
	for _, name := range filter.Names {
		q.text("name", name)
	}
	for _, engine := range filter.Engines {
		q.text("engine", engine)
	}
	for name, is := range map[string]bool{"engined": filter.Engined, "groups": filter.Groups} {
		if is {
			q[name] = []string{"true"}
		}
	}
	for after := filter.After; ; {
		size := maxQueuesPage
		if filter.Limit > 0 {
			size = min(size, filter.Limit-len(all))
		}
		q["limit"] = []string{strconv.Itoa(size)}
		if after != "" {
			q["after"] = []string{after}
		}
		var answer struct {
			Queues []queueView `json:"queues"`
		}
		if err := s.call(ctx, request{verb: "read queues", path: "/queues", query: q.values(), out: &answer}); err != nil {
			return nil, err
		}
		for _, view := range answer.Queues {
			queue, err := view.queue()
			if err != nil {
				return nil, err
			}
			all, after = append(all, queue), queue.Name
		}
		if len(answer.Queues) < size || len(all) == filter.Limit {
			return all, nil
		}
	}
}

// saveBody is a queue to save.
type saveBody struct {
	Version   int64             `json:"version,omitempty"`
	Settings  map[string]string `json:"settings"`
	Scheduled rawList           `json:"scheduled,omitempty"`
	Reason    string            `json:"reason,omitempty"`
}

// settingsText writes settings by name, as people write them.
func settingsText(s sluice.Settings) map[string]string {
	out := make(map[string]string)
	for _, setting := range sluice.AllSettings() {
		out[setting.Name] = setting.Format(s)
	}
	return out
}

// SaveQueue stores the settings of a queue.
func (s *Store) SaveQueue(ctx context.Context, queue sluice.Queue, act sluice.Act) (sluice.Queue, error) {
	body := saveBody{Version: queue.Version, Settings: settingsText(queue.Settings), Reason: act.Reason}
	var err error
	if body.Scheduled, err = listOf(queue.Scheduled); err != nil {
		return sluice.Queue{}, err
	}
	var view queueView
	if err := s.call(ctx, saving("save a queue", queuePath(queue.Name, ""), &act, body, &view)); err != nil {
		return sluice.Queue{}, err
	}
	return view.queue()
}

// RecordQueueChange is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) RecordQueueChange(context.Context, sluice.Queue, sluice.Act) (sluice.Queue, error) {
	return sluice.Queue{}, s.theServer("To audit a change by plain SQL")
}

// DeleteQueue deletes an empty queue.
func (s *Store) DeleteQueue(ctx context.Context, name string, act sluice.Act) error {
	return s.call(ctx, deleting("delete a queue", queuePath(name, ""), &act))
}

// manyQueues lists queues of many names.
func (s *Store) manyQueues(ctx context.Context, filter sluice.QueueFilter) (all []sluice.Queue, err error) {
	for names := range slices.Chunk(filter.Names, maxQueueNames) {
		some := filter
		some.Names = names
		found, err := s.queues(ctx, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b sluice.Queue) int { return cmp.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b sluice.Queue) bool { return a.Name == b.Name })
	if filter.Limit > 0 && len(all) > filter.Limit {
		all = all[:filter.Limit]
	}
	return all, nil
}

// rawList is a list of JSON objects, such as scheduled changes, which this package does not read.
type rawList []json.RawMessage

// text returns the list as a queue has it. An empty list is none.
func (l rawList) text() json.RawMessage {
	if len(l) == 0 {
		return nil
	}
	text, _ := json.Marshal(l) // it was read
	return text
}

// listOf reads a list.
func listOf(text json.RawMessage) (list rawList, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, &sluice.InvalidError{Field: "scheduled", Rule: "must be a list: " + err.Error()}
	}
	return list, nil
}
