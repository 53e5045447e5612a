package acting

import (
	"context"

	"github.com/sluice-queue/sluice"
	settingsgroup "github.com/sluice-queue/sluice/internal/group"
)

// GroupOf returns the nearest stored group of a queue, with the settings that a new queue begins with. Without a group,
// these are the defaults, and the name is empty.
func GroupOf(ctx context.Context, client *sluice.Client, queue string) (above sluice.Queue, err error) {
	above.Settings = sluice.DefaultSettings()
	names := sluice.GroupsOf(queue)
	if len(names) == 0 {
		return above, nil
	}
	stored, err := client.Queues(ctx, sluice.QueueFilter{Names: names})
	if err != nil {
		return above, err
	}
	if nearest, is := settingsgroup.Nearest(queue, stored); is {
		above = nearest
	}
	return above, nil
}
