package console

import (
	"context"
	"net/url"
)

func queuePages() []page {
	return []page{{name: "queues", path: "/queues", title: "Queues", letter: "k", load: loadQueues}}
}

// queueList is the view of /queues.
type queueList struct {
	Queues []queueRow `json:"queues"`
}

func loadQueues(ctx context.Context, v *visit) (any, error) {
	var view queueList
	v.cli("sluice queues")
	err := v.get(ctx, "/queues", url.Values{"limit": {"100"}, "after": v.query["after"]}, &view)
	return view, err
}

func queueActs() []act {
	return []act{
		{
			name: "pause-queue", label: "Pause", route: "pause-queue", undo: "resume-queue", command: "sluice pause {queue} --for={for} --reason={reason}",
			sentence: "Pause {queue}: nothing more is claimed from it. Jobs that run go on.",
			fields:   []field{{name: "for", label: "For", hint: "such as 30m; empty: until somebody resumes it", kind: "duration"}},
		},
		{
			name: "resume-queue", label: "Resume", route: "resume-queue", undo: "pause-queue", command: "sluice resume {queue} --reason={reason}",
			sentence: "Resume {queue}: its jobs are claimed again.",
		},
	}
}
