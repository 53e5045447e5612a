package notify_test

import (
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/notify"
)

func TestEachReceiverHasAQueueOfItsOwn(t *testing.T) {
	t.Parallel()
	if got := notify.Queue("phone"); got != "sluice.notify.phone" {
		t.Errorf("the queue of phone is %s", got)
	}
	seen := make(map[string]string)
	for _, receiver := range []string{
		"phone", "", " ", "a b", "a-b", "a/b", "a\x00b", "é", "\xff", "webhook hooks.example.com 1a2b3c4d", "webhook hooks.example.com 1a2b3c4e",
		strings.Repeat("a", 50), strings.Repeat("a", 51), strings.Repeat("a", 300) + "b", strings.Repeat("a", 300) + "c",
	} {
		queue := notify.Queue(receiver)
		if err := sluice.CheckQueueName(queue); err != nil || !sluice.IsInternalQueue(queue) || !notify.IsQueue(queue) {
			t.Errorf("the queue of %q is %q: %v", receiver, queue, err)
		}
		if other, taken := seen[queue]; taken {
			t.Errorf("%q and %q share the queue %s", receiver, other, queue)
		}
		seen[queue] = receiver
	}
	if got := notify.Queue("webhook hooks.example.com 1a2b3c4d"); !strings.HasPrefix(got, "sluice.notify.webhook-hooks.example.com-1a2b3c4d-") {
		t.Errorf("the queue of a webhook is %s", got)
	}
}

func TestSettingsOfNotificationsAreValid(t *testing.T) {
	t.Parallel()
	if err := notify.Settings().Check(); err != nil {
		t.Error(err)
	}
	if notify.Settings().Lease <= notify.Batch*notify.Timeout {
		t.Error("the lease is too short for a batch")
	}
}
