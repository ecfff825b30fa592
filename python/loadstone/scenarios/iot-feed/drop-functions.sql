do language plpgsql $$
begin
  execute format('drop function if exists %I.loadstone_drop_feed(int)', current_schema());
  execute format('drop function if exists %I.ins_batch(int, int)', current_schema());
  execute format('drop function if exists %I.ins(int)', current_schema());
end;
$$;
{% if storage_path %}
drop tablespace if exists loadstone_feed;
{% endif %}
