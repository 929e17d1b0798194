create table pgque_internal.next_release (id int4);
