create table orders (id bigint primary key, note text default '${greeting}');
select pgque.create_queue('from-migration');
