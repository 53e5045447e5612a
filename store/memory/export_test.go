package memory

import (
	"github.com/sluice-queue/sluice"
)

// SetColumn changes a column of a queue's row, as plain SQL does in the SQL stores.
func (s *Store) SetColumn(queue, column string, value any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queues[queue]
	told, plans := q.Columns()
	row := []any{q.Name, q.Version, q.ChangedAt, q.ChangedBy, q.Reason, q.Now, told, plans, q.ByTenant}
	for _, setting := range sluice.StoredSettings() {
		stored := setting.Stored(q.Settings)
		if setting.Column() == column {
			stored = value
		}
		row = append(row, stored)
	}
	changed, err := sluice.QueueFromRow(row)
	if err != nil {
		panic(err)
	}
	s.queues[queue] = changed
}

// TenantQueues returns the number of tenant queues of a queue.
func (s *Store) TenantQueues(queue string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.backlog(queue).tenantQueues)
}
