-- InnoDB keeps a table in its primary key.
do (select count(logouttime) from loadstone.user_session force index (primary));
