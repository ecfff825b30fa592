-- A tablespace of this name that somebody else has made is neither used nor dropped.
{% if storage_path %}
do language plpgsql $$
begin
  if exists (select from pg_tablespace where spcname = 'loadstone_feed'
             and shobj_description(oid, 'pg_tablespace') is distinct from 'made by Loadstone') then
    raise exception 'there is a tablespace loadstone_feed that Loadstone did not create'
    using hint = 'Rename it, or set the parameter tablespace to one of your own.';
  end if;
end;
$$;
{% endif %}
