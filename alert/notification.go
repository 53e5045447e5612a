package alert

import (
	"encoding/json"

	"github.com/sluice-queue/sluice"
)

// Jobs returns the jobs of the messages: one for each message and queue of a receiver, in the order of the messages. The
// jobs of one alert share an order key, so that the begin of an alert is delivered before its end. Stores call it.
//
// The queues are stored in the same transaction. If somebody deletes one meanwhile, the store refuses the jobs with
// [sluice.ErrQueueGone].
func (e Evaluation) Jobs(queues []string) ([]sluice.Insert, error) {
	var jobs []sluice.Insert
	for _, m := range e.Messages {
		payload, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		for _, queue := range queues {
			jobs = append(jobs, sluice.Insert{Known: true, NewJob: sluice.NewJob{
				Queue: queue, Payload: payload, EnqueueOptions: sluice.EnqueueOptions{
					ID: sluice.NewID(), Priority: sluice.DefaultPriority, OrderKey: RuleName(m.Rule, m.Queue), Labels: m.labels(),
				},
			}})
		}
	}
	return jobs, nil
}

// labels are what people search a notification by.
func (m Message) labels() map[string]string {
	out := map[string]string{"rule": m.Rule, "event": string(m.Event)}
	if m.Queue != "" {
		out["queue"] = m.Queue
	}
	return out
}
